// The part of a convolution's weights that a packing work-item takes: a block of TILE output channels
// for SOURCES source channels.
//
// Use        locate_block(sizes, taps): of work-item (block of all groups, share of the sources).
// Defines    TILE SOURCES; TRANSPOSED as in conv_axis.cl, which says which side is the source.
// Needs conv_axis.cl before it.

typedef struct {
  int rows;         // output channels, at most TILE
  int begin, end;   // source channels
  int row, source;  // elements from one output channel to the next, and from one source channel
  size_t first;     // the element of the first output channel and source channel 0
} weight_block;

static inline weight_block locate_block(const int8 sizes, const int taps) {
  const int channels = SOURCE_CHANNELS, filters = OUT_CHANNELS;
  const int blocks = (filters + TILE - 1) / TILE;
  const int group = (int)get_global_id(0) / blocks;
  const int first = ((int)get_global_id(0) - group * blocks) * TILE;
  weight_block at;
  at.rows = min(TILE, filters - first);
  at.begin = (int)get_global_id(1) * SOURCES;
  at.end = min(at.begin + SOURCES, channels);
#if TRANSPOSED
  at.row = taps;
  at.source = filters * taps;
#else
  at.row = channels * taps;
  at.source = taps;
#endif
  at.first = (size_t)group * channels * filters * taps + (size_t)first * at.row;
  return at;
}
