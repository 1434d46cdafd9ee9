// CIFAR-10 and CIFAR-100 in their binary form: images of 3 x 32 x 32 bytes. Threads: any.
#ifndef NETCL_APPS_NETCL_APP_FORMATS_CIFAR_H_
#define NETCL_APPS_NETCL_APP_FORMATS_CIFAR_H_

#include <string>
#include <string_view>
#include <vector>

#include "apps/netcl_app/formats/samples.h"

namespace netcl::app {

// Appends the records of one file. `classes`: 10 (one label byte before each image), or 100 and 20
// (a coarse and a fine label byte, of which the fine or the coarse one counts).
// Errors: kData for a file that does not consist of whole records, and for a label out of range.
void parse_cifar(std::string_view bytes, const std::string& path, int64_t classes, Samples& out);

// The files of a set, one after the other.
Samples read_cifar(const std::vector<std::string>& paths, int64_t classes);

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_FORMATS_CIFAR_H_
