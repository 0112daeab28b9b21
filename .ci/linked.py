#!/usr/bin/env python3
"""Lists what is linked into the files of a release, from the linker's maps (WEIR_STATIC_DEPS writes them).

    .ci/linked.py --licenses DIR MAPS                           copies the licences of all that the folder MAPS names
    .ci/linked.py --spdx FILE VERSION DATE NAME=FILE=MAP...     writes an SPDX 2.3 document

An archive counts if the linker took at least one member of it. An archive without a row in COMPONENTS ends the release
with one line: whoever links a new library states its licence here."""
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys

GCC = "GPL-3.0-or-later WITH GCC-exception-3.1"
GLIBC = "LGPL-2.1-or-later"
# file: (component, licence as an SPDX expression, home page)
COMPONENTS = {
    "libhdf5.a": ("hdf5", "LicenseRef-HDF5", "https://www.hdfgroup.org/solutions/hdf5/"),
    "libsz.a": ("libaec", "BSD-2-Clause", "https://gitlab.dkrz.de/k202009/libaec"),
    "libaec.a": ("libaec", "BSD-2-Clause", "https://gitlab.dkrz.de/k202009/libaec"),
    "libz.a": ("zlib", "Zlib", "https://zlib.net/"),
    "libjpeg.a": ("libjpeg-turbo", "BSD-3-Clause AND IJG AND Zlib", "https://libjpeg-turbo.org/"),
    "libjansson.a": ("jansson", "MIT", "https://github.com/akheron/jansson"),
    "libpng16.a": ("libpng", "libpng-2.0", "http://www.libpng.org/pub/png/libpng.html"),
    "libdeflate.a": ("libdeflate", "MIT", "https://github.com/ebiggers/libdeflate"),
    "libblosc.a": ("c-blosc", "BSD-3-Clause AND MIT", "https://www.blosc.org/"),
    "liblz4.a": ("lz4", "BSD-2-Clause", "https://lz4.org/"),
    "libzstd.a": ("zstd", "BSD-3-Clause OR GPL-2.0-only", "https://facebook.github.io/zstd/"),
    "liburing.a": ("liburing", "LGPL-2.1-only OR MIT", "https://github.com/axboe/liburing"),
    "liblmdb.a": ("lmdb", "OLDAP-2.8", "https://www.symas.com/mdb"),
    "libopenjp2.a": ("openjpeg", "BSD-2-Clause", "https://www.openjpeg.org/"),
    "libcurl.a": ("curl", "curl", "https://curl.se"),
    "libssl.a": ("openssl", "Apache-2.0", "https://www.openssl.org"),
    "libcrypto.a": ("openssl", "Apache-2.0", "https://www.openssl.org"),
    "libdav1d.a": ("dav1d", "BSD-2-Clause", "https://code.videolan.org/videolan/dav1d"),
    "libmicrohttpd.a": ("libmicrohttpd", "LGPL-2.1-or-later", "https://www.gnu.org/software/libmicrohttpd/"),
    "xxhash.h": ("xxhash", "BSD-2-Clause", "https://xxhash.com/"),
    "libcudart_static.a": ("cuda-runtime", "LicenseRef-NVIDIA-CUDA", "https://docs.nvidia.com/cuda/eula/"),
    "libcudadevrt.a": ("cuda-runtime", "LicenseRef-NVIDIA-CUDA", "https://docs.nvidia.com/cuda/eula/"),
    "libgcc.a": ("gcc", GCC, "https://gcc.gnu.org/"),
    "libgcc_eh.a": ("gcc", GCC, "https://gcc.gnu.org/"),
    "libstdc++.a": ("gcc", GCC, "https://gcc.gnu.org/"),
    "libc_nonshared.a": ("glibc", GLIBC, "https://www.gnu.org/software/libc/"),
}
CUDA_TERMS = """NVIDIA CUDA Toolkit End User License Agreement, whose Attachment A lists libcudart_static.a as
redistributable: https://docs.nvidia.com/cuda/eula/
"""
GLIBC_COMMENT = """Only libc_nonshared.a is linked in: functions such as atexit and stat that glibc puts into every
program. The rest of glibc is the shared library of the user's machine. The sources of these functions permit
linking them with other programs, and distributing those, without restriction.
"""
# Licences whose text is in /usr/share/common-licenses, where Debian's copyright files refer to it.
FULL_TEXTS = {"LGPL-2.1": "LGPL-2.1", "GPL-3.0": "GPL-3"}
HEADER_ONLY = "/usr/include/xxhash.h"  # no map names it; every program of Weir contains base/hash.c, which includes it


def fail(text):
    sys.exit(f"linked.py: {text}")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def archives(path):
    """Archives with members in the map, without Weir's own (relative names)."""
    try:
        with open(path) as file:
            text = file.read()
    except OSError as error:
        fail(f"{path}: {error.strerror}; build with WEIR_STATIC_DEPS first")
    taken = {os.path.realpath(name) for name in re.findall(r"^(/\S+\.a)\(", text, re.M)}
    return sorted(taken | {HEADER_ONLY})


def command(*arguments):
    return subprocess.run(arguments, capture_output=True, text=True, check=False).stdout.strip()


def debian_package(path):
    """(name, version) of the installed package that owns the file; names below /usr may be listed without it."""
    for name in (path, path.removeprefix("/usr")):
        owner = command("dpkg-query", "-S", name).partition(":")[0]
        if owner:
            return owner, command("dpkg-query", "-W", "-f", "${Version}\n", owner).splitlines()[0]
    return None, None


def component(path):
    """Facts of one archive."""
    key = os.path.basename(path)
    if key not in COMPONENTS:
        fail(f"{path} is linked in, but has no row in COMPONENTS; add its name, licence and home page")
    name, licence, home = COMPONENTS[key]
    facts = {"name": name, "licence": licence, "home": home, "purl": None, "comment": "",
             "supplier": "Organization: Debian"}
    package, version = debian_package(path)
    if package:
        facts["purl"] = f"pkg:deb/debian/{package}@{version.replace('+', '%2B')}?distro=bookworm"
        facts["text"] = read(f"/usr/share/doc/{package}/copyright")
    elif name in ("hdf5", "dav1d", "libmicrohttpd", "curl"):  # made by the script of that name in .ci
        folder = os.path.dirname(os.path.dirname(path))
        source = next(file for file in os.listdir(folder) if file.endswith(".dsc"))
        version = source.removeprefix(f"{name}_").removesuffix(".dsc")
        facts["purl"] = f"pkg:deb/debian/{name}@{version.replace('+', '%2B')}?arch=source&distro=bookworm"
        facts["text"] = read(os.path.join(folder, "COPYING"))
    elif name == "glibc":  # made by .ci/glibc.sh
        version = "2.28"
        facts["supplier"], facts["comment"] = "Organization: Free Software Foundation", GLIBC_COMMENT
        facts["text"] = GLIBC_COMMENT + "\n" + read("/usr/share/common-licenses/LGPL-2.1")
    elif name == "cuda-runtime":
        with open(os.path.join(os.path.dirname(os.path.dirname(path)), "include", "cuda_runtime_api.h")) as file:
            number = int(re.search(r"#define CUDART_VERSION +(\d+)", file.read()).group(1))
        version = f"{number // 1000}.{number % 1000 // 10}"
        facts["supplier"], facts["text"] = "Organization: NVIDIA Corporation", CUDA_TERMS
    else:
        fail(f"{path} is in no Debian package")
    facts["version"] = version
    return facts


def components(maps):
    """Components of several maps, each once, by name."""
    found = [component(path) for path in sorted({path for name in maps for path in archives(name)})]
    return sorted({facts["name"]: facts for facts in found}.values(), key=lambda facts: facts["name"])


def copy_licenses(folder, maps):
    os.makedirs(folder, exist_ok=True)
    for facts in components([os.path.join(maps, name) for name in sorted(os.listdir(maps))]):
        with open(os.path.join(folder, facts["name"]), "w", encoding="utf-8") as file:
            file.write(facts["text"])
        for licence, name in FULL_TEXTS.items():
            if facts["licence"].startswith(licence):
                shutil.copyfile(f"/usr/share/common-licenses/{name}", os.path.join(folder, name))


def spdx_id(kind, name):
    return "SPDXRef-" + kind + "-" + re.sub(r"[^A-Za-z0-9.-]", "-", name)


def spdx_package(facts):
    package = {"name": facts["name"], "SPDXID": spdx_id("Package", facts["name"]), "versionInfo": facts["version"],
               "downloadLocation": facts["home"], "filesAnalyzed": False, "supplier": facts["supplier"],
               "licenseConcluded": "NOASSERTION", "licenseDeclared": facts["licence"], "copyrightText": "NOASSERTION"}
    if facts["comment"]:
        package["licenseComments"] = facts["comment"].strip()
    if facts["purl"]:
        package["externalRefs"] = [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                                    "referenceLocator": facts["purl"]}]
    return package


def digests(path):
    with open(path, "rb") as file:
        data = file.read()
    return [{"algorithm": name.upper(), "checksumValue": hashlib.new(name, data).hexdigest()} for name in ("sha1", "sha256")]


def write_spdx(to, version, date, files):
    files = [file.split("=") for file in files]
    weir = spdx_id("Package", "weir")
    packages = [{"name": "weir", "SPDXID": weir, "versionInfo": version, "downloadLocation": "NOASSERTION",
                 "supplier": "Organization: Weir", "filesAnalyzed": False, "licenseConcluded": "Apache-2.0",
                 "licenseDeclared": "Apache-2.0", "copyrightText": "NOASSERTION"}]
    relations = [("SPDXRef-DOCUMENT", "DESCRIBES", weir)]
    rows = []
    for name, path, map_file in files:
        file_id = spdx_id("File", name)
        rows.append({"fileName": "./" + name, "SPDXID": file_id, "checksums": digests(path),
                     "licenseConcluded": "NOASSERTION", "copyrightText": "NOASSERTION"})
        relations += [("SPDXRef-DOCUMENT", "DESCRIBES", file_id), (file_id, "GENERATED_FROM", weir)]
        relations += [(file_id, "STATIC_LINK", spdx_id("Package", facts["name"])) for facts in components([map_file])]
    linked = components([file[2] for file in files])
    packages += [spdx_package(facts) for facts in linked]
    own_terms = {facts["licence"]: facts["text"] for facts in linked if facts["licence"].startswith("LicenseRef-")}
    document = {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"weir-{version}",
        "documentNamespace": f"https://spdx.org/spdxdocs/weir-{version}-{rows[0]['checksums'][1]['checksumValue']}",
        "creationInfo": {"created": date, "creators": ["Tool: weir-.ci/linked.py"]},
        "packages": packages, "files": rows,
        "hasExtractedLicensingInfos": [{"licenseId": name, "extractedText": text}
                                       for name, text in sorted(own_terms.items())],
        "relationships": [{"spdxElementId": a, "relationshipType": kind, "relatedSpdxElement": b}
                          for a, kind, b in relations]}
    with open(to, "w") as file:
        json.dump(document, file, indent=1)
        file.write("\n")


def main(arguments):
    if len(arguments) == 3 and arguments[0] == "--licenses":
        copy_licenses(arguments[1], arguments[2])
    elif len(arguments) > 4 and arguments[0] == "--spdx":
        write_spdx(*arguments[1:4], arguments[4:])
    else:
        print(__doc__, file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main(sys.argv[1:])
