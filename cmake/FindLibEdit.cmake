# The line editor of `triax chat` (Debian: libedit-dev). Sets LibEdit_FOUND and the target LibEdit::LibEdit.
find_path(LibEdit_INCLUDE_DIR histedit.h)
find_library(LibEdit_LIBRARY edit)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LibEdit
  REASON_FAILURE_MESSAGE "install libedit-dev: triax chat edits lines with it"
  REQUIRED_VARS LibEdit_LIBRARY LibEdit_INCLUDE_DIR)
if(LibEdit_FOUND AND NOT TARGET LibEdit::LibEdit)
  add_library(LibEdit::LibEdit UNKNOWN IMPORTED)
  set_target_properties(LibEdit::LibEdit PROPERTIES
    IMPORTED_LOCATION ${LibEdit_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${LibEdit_INCLUDE_DIR})
endif()
mark_as_advanced(LibEdit_INCLUDE_DIR LibEdit_LIBRARY)
