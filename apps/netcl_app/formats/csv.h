// CSV and TSV: quotes, a byte-order mark, CRLF, headers, and text labels. Threads: any.
#ifndef NETCL_APPS_NETCL_APP_FORMATS_CSV_H_
#define NETCL_APPS_NETCL_APP_FORMATS_CSV_H_

#include <string>
#include <string_view>
#include <vector>

#include "apps/netcl_app/formats/data_config.h"
#include "apps/netcl_app/formats/samples.h"

namespace netcl::app {

// Parses the text of a table: every column but the label's is a feature. Blank lines are skipped.
//
// Header: with "auto" the first row is one if a column other than the label's is no number. A first
// row of the form `rows,features,class,class,...` is understood: it must count the rows that follow
// and names the classes. Labels: whole numbers from 0, or texts, which become classes in the order
// in which they first appear (`known_classes` come first and no others are accepted if it is not
// empty). Features that are all whole numbers from 0 to 255 are kept as bytes, else as floats.
// Errors: kData, "path:line:column N: ..." with the text that was found.
Samples parse_csv(std::string_view text, const DataConfig& config, const std::string& path,
                  const std::vector<std::string>& known_classes = {});

// The same for a file, unpacked if it is gzip data.
Samples read_csv(const std::string& path, const DataConfig& config,
                 const std::vector<std::string>& known_classes = {});

// A piece of the file in quotes for a message: shortened, other bytes than printable ASCII and
// UTF-8 escaped.
std::string quoted(std::string_view text);

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_FORMATS_CSV_H_
