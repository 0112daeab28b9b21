# For sourcing: fetches and unpacks the source of a Debian package. debian_source NAME WORK sets $package (the .dsc file)
# and $source (the folder), both in the folder WORK, which it empties; what it does is in WORK/log. Calls fail with a
# reason.
#
# "apt-get source" fetches the package from this system's package servers, with its own lists and cache: it needs no
# root and changes nothing on the system.
# shellcheck shell=bash disable=SC2034 # the caller uses them
debian_source_fetch() {
    "${debian_source_apt[@]}" update >"$2/log" 2>&1 && (cd "$2" && "${debian_source_apt[@]}" source --only-source "$1") >>"$2/log" 2>&1
}

debian_source() {
    local name=$1 work=$2
    command -v apt-get dpkg-source >/dev/null || fail "apt-get and dpkg-source (dpkg-dev) are needed"
    rm -rf "$work"
    mkdir -p "$work/lists/partial" "$work/cache/archives/partial"
    # Derives the source repositories from the system's binary ones.
    apt-get indextargets --format "deb-src \$(REPO_URI) \$(RELEASE) \$(COMPONENT)" \
        'Created-By: Packages' 'Origin: Debian' 'Component: main' | sort -u >"$work/sources.list"
    [ -s "$work/sources.list" ] || fail "this system has no Debian package servers"
    debian_source_apt=(apt-get -q -o Dir::Etc::SourceList="$work/sources.list" -o Dir::Etc::SourceParts=/dev/null
        -o Dir::State::Lists="$work/lists" -o Dir::Cache="$work/cache" -o APT::Sandbox::User="$(id -un)")
    # Some mirrors have no sources of security updates. Point releases of Debian contain these packages too.
    if ! debian_source_fetch "$name" "$work"; then
        sed -i '/-security/d' "$work/sources.list"
        debian_source_fetch "$name" "$work" || fail "apt-get source $name failed: $(tail -1 "$work/log")"
    fi
    package=$(find "$work" -maxdepth 1 -name "${name}_*.dsc")
    source=$(find "$work" -maxdepth 1 -type d -name "$name-*")
    # For files that contain the date of their configuration, so that every build is equal.
    SOURCE_DATE_EPOCH=$(dpkg-parsechangelog -l "$source/debian/changelog" -S Timestamp)
    export SOURCE_DATE_EPOCH
}
