/* Two concurrent memcpys, the yardstick of an all-reduce: memcpys ROUNDS BYTES...
 *
 * Two processes, each on a processor of its own, each copy BYTES from memory of their own to shared
 * memory; all pages have been touched. Output: a line "BYTES SECONDS" for each round, from the
 * moment at which the last process is ready until the last one has finished.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { RANKS = 2, WARM_UP = 3 };

struct control {
  atomic_uint arrived;
  uint64_t ready[RANKS], done[RANKS];
};

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void* memory(size_t bytes, int flags) {
  void* p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (p == MAP_FAILED) {
    perror("mmap");
    exit(1);
  }
  return p;
}

static void barrier(struct control* c, unsigned* n) {
  *n += RANKS;
  atomic_fetch_add(&c->arrived, 1);
  while (atomic_load(&c->arrived) < *n) sched_yield();
}

static uint64_t later(const uint64_t* t) { return t[0] > t[1] ? t[0] : t[1]; }

static void rank_main(int rank, struct control* c, char* shared, size_t bytes, int rounds) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(rank % (int)sysconf(_SC_NPROCESSORS_ONLN), &set);
  sched_setaffinity(0, sizeof(set), &set);
  char* from = memory(bytes, MAP_PRIVATE);
  char* to = shared + (size_t)rank * bytes;
  memset(to, 1, bytes);
  unsigned n = 0;
  for (int i = -WARM_UP; i < rounds; ++i) {
    memset(from, i + 10, bytes);
    barrier(c, &n);
    c->ready[rank] = now_ns();
    memcpy(to, from, bytes);
    c->done[rank] = now_ns();
    barrier(c, &n);
    if (to[bytes - 1] != (char)(i + 10)) exit(1);
    if (rank == 0 && i >= 0) {
      printf("%zu %.9f\n", bytes, (double)(later(c->done) - later(c->ready)) * 1e-9);
    }
    barrier(c, &n);
  }
  fflush(stdout);
}

int main(int argc, char** argv) {
  if (argc < 3) {
    fprintf(stderr, "memcpys ROUNDS BYTES...\n");
    return 2;
  }
  for (int a = 2; a < argc; ++a) {
    const size_t bytes = strtoull(argv[a], NULL, 10);
    struct control* c = memory(sizeof(*c), MAP_SHARED);
    char* shared = memory(bytes * RANKS, MAP_SHARED);
    for (int r = 0; r < RANKS; ++r) {
      if (fork() != 0) continue;
      rank_main(r, c, shared, bytes, atoi(argv[1]));
      return 0;
    }
    for (int r = 0; r < RANKS; ++r) {
      int status = 0;
      if (wait(&status) < 0 || status != 0) return 1;
    }
    munmap(shared, bytes * RANKS);
  }
  return 0;
}
