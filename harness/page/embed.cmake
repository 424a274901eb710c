# Writes assets.cpp: page.css and page.js as bytes, and the script's hash as a content security policy wants it.
#   cmake -DCSS= -DJS= -DOUTPUT= -P embed.cmake

function(bytes_of file result)
  file(READ ${file} hex HEX)
  string(REGEX REPLACE "(..)" "0x\\1," bytes "${hex}")
  string(REGEX REPLACE "(................................................................................)" "\\1\n" bytes "${bytes}")
  set(${result} "${bytes}" PARENT_SCOPE)
endfunction()

# Base64 (RFC 4648) of a text of hexadecimal digits: three bytes are six digits, and four letters.
function(base64_of hex result)
  set(alphabet "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
  string(LENGTH "${hex}" digits)
  set(text "")
  foreach(at RANGE 0 ${digits} 6)
    if(at EQUAL digits)
      break()
    endif()
    string(SUBSTRING "${hex}" ${at} 6 group)
    string(LENGTH "${group}" length)
    string(SUBSTRING "${group}000000" 0 6 whole)
    math(EXPR bits "0x${whole}")
    foreach(shift 18 12 6 0)
      math(EXPR index "(${bits} >> ${shift}) & 63")
      string(SUBSTRING "${alphabet}" ${index} 1 letter)
      string(APPEND text "${letter}")
    endforeach()
    # One byte fills two letters of the four, two bytes three.
    if(length EQUAL 2)
      string(REGEX REPLACE "..$" "==" text "${text}")
    elseif(length EQUAL 4)
      string(REGEX REPLACE ".$" "=" text "${text}")
    endif()
  endforeach()
  set(${result} "${text}" PARENT_SCOPE)
endfunction()

bytes_of(${CSS} css)
bytes_of(${JS} js)
file(SHA256 ${JS} sha)
base64_of("${sha}" hash)
file(WRITE ${OUTPUT} "// Made by embed.cmake from page.css and page.js.
#include \"harness/page/html.h\"

namespace gpubench::page {
namespace {

constexpr unsigned char css[] = {
${css}};

constexpr unsigned char js[] = {
${js}};

}  // namespace

std::string_view style_sheet() { return {reinterpret_cast<const char*>(css), sizeof css}; }

std::string_view script() { return {reinterpret_cast<const char*>(js), sizeof js}; }

std::string_view script_hash() { return \"sha256-${hash}\"; }

}  // namespace gpubench::page
")
