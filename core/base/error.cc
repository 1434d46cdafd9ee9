#include "core/base/error.h"

namespace netcl {

int exit_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInternal:
      return 1;
    case ErrorCode::kUsage:
      return 2;
    case ErrorCode::kDevice:
      return 3;
    case ErrorCode::kPlugin:
      return 4;
    case ErrorCode::kData:
      return 5;
    case ErrorCode::kTraining:
      return 6;
    case ErrorCode::kCheckpoint:
      return 7;
    case ErrorCode::kInterrupted:
      return 130;
  }
  return 1;
}

}  // namespace netcl
