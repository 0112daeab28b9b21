# Writes a C file with the bytes of a text file as the array NAME, its size as NAME_size, and its SHA-256 sum as
# NAME_sha256: cmake -DNAME=... -DINPUT=... -DOUTPUT=... -P Embed.cmake
file(READ ${INPUT} bytes HEX)
file(SHA256 ${INPUT} sum)
string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
string(REGEX REPLACE "(..)" "0x\\1," sum "${sum}")
file(WRITE ${OUTPUT} "#include \"analyze/page/page_priv.h\"
const unsigned char ${NAME}[] = {${bytes}};
const size_t ${NAME}_size = sizeof ${NAME};
const unsigned char ${NAME}_sha256[32] = {${sum}};
")
