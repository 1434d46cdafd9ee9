/* MPI_Allreduce of f32 sums with the copies that a device needs: mpi_ranks ROUNDS BYTES...
 *
 * Each rank copies BYTES from its "device" memory to the host buffer, reduces in place, and copies
 * back. Output of rank 0: a line "BYTES SECONDS" for each round, from the moment at which the last
 * rank is ready until the last one has the result.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WARM_UP = 3 };

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int main(int argc, char** argv) {
  int rank = 0, n_ranks = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
  for (int a = 2; a < argc; ++a) {
    const size_t bytes = strtoull(argv[a], NULL, 10), count = bytes / sizeof(float);
    float* device = malloc(bytes);
    float* host = malloc(bytes);
    memset(host, 0, bytes);
    for (int i = -WARM_UP; i < atoi(argv[1]); ++i) {
      for (size_t k = 0; k < count; ++k) device[k] = (float)(rank + 1);
      MPI_Barrier(MPI_COMM_WORLD);
      double moments[2], last[2];
      moments[0] = now();
      memcpy(host, device, bytes);
      MPI_Allreduce(MPI_IN_PLACE, host, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      memcpy(device, host, bytes);
      moments[1] = now();
      if (device[count - 1] != (float)(n_ranks * (n_ranks + 1) / 2)) MPI_Abort(MPI_COMM_WORLD, 1);
      MPI_Reduce(moments, last, 2, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
      if (rank == 0 && i >= 0) printf("%zu %.9f\n", bytes, last[1] - last[0]);
    }
    free(device);
    free(host);
  }
  MPI_Finalize();
  return 0;
}
