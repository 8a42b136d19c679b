// A film of a request in a line, as `run` and `plan` print it.
#pragma once

#include <string>

#include "plateau/request.h"

namespace plateau::cli {

/// REQUIRES: the report is a film's.
std::string film_text(const ImageReport& film);

}  // namespace plateau::cli
