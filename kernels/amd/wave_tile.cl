// How the waves of a work-group of 256 share out a tile: each has a compact part of it, 8 work-items
// wide and WAVE / 8 high, so that what its work-items read of local memory at once are few numbers.
//
// Use        WAVE_PLACE declares t, the number in the work-group, and lx, ly, the place among 16 x 16,
//            as tile.cl wants them. The local size is [256].
// Defines    WAVE: work-items that a wave has, 32 or 64; with another one results are the same.

#define WAVE_PLACE                                                                     \
  const int t = (int)get_local_id(0);                                                  \
  const int lx = t / WAVE % 2 * 8 + t % 8;                                             \
  const int ly = t / WAVE / 2 * (WAVE / 8) + t % WAVE / 8;
