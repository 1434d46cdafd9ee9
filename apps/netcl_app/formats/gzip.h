// Reading files that may be gzip-compressed. Threads: any.
#ifndef NETCL_APPS_NETCL_APP_FORMATS_GZIP_H_
#define NETCL_APPS_NETCL_APP_FORMATS_GZIP_H_

#include <string>
#include <string_view>

namespace netcl::app {

// Unpacks gzip data of one or more members. `name` stands for the file in messages.
// Errors: kData for truncated or damaged data, and for bytes after its end.
std::string gunzip(std::string_view bytes, const std::string& name);

// The content of a data file, unpacked if it starts as gzip data does, whatever its name.
// Errors: kData; also for a name that ends in .gz when the content is something else.
std::string read_data_file(const std::string& path);

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_FORMATS_GZIP_H_
