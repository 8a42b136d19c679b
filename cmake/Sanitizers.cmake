if(PLATEAU_SANITIZE)
  add_compile_options(-fsanitize=${PLATEAU_SANITIZE} -fno-omit-frame-pointer
                      -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${PLATEAU_SANITIZE})
endif()
