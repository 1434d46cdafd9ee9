// The register block that the products for CPUs share: TILE rows times VECTORS vectors of VECTOR
// floats, all in named variables.
//
// Use        EACH_ROW(M): M(0) M(1) ..., for the rows; EACH_SUM(M, r): M(r, 0) M(r, 1) ..., for the
//            vectors of a row. CLEAR_SUMS declares float vectors sum_ROW_VECTOR of zeros;
//            MULTIPLY_PACKED adds to them. WIDTH: columns of a panel.
// Defines    VECTORS TILE, VECTOR (vector.cl).
// Tunables   VECTORS: 1, 2 or 3; TILE: 1, 2, 4, 6, 8 or 12. TILE * VECTORS sums should stay in registers.
// Needs storage.cl and vector.cl before it.

#define WIDTH (VECTOR * VECTORS)

#if TILE == 1
#define EACH_ROW(M) M(0)
#elif TILE == 2
#define EACH_ROW(M) M(0) M(1)
#elif TILE == 4
#define EACH_ROW(M) M(0) M(1) M(2) M(3)
#elif TILE == 6
#define EACH_ROW(M) M(0) M(1) M(2) M(3) M(4) M(5)
#elif TILE == 8
#define EACH_ROW(M) M(0) M(1) M(2) M(3) M(4) M(5) M(6) M(7)
#else
#define EACH_ROW(M) M(0) M(1) M(2) M(3) M(4) M(5) M(6) M(7) M(8) M(9) M(10) M(11)
#endif

#if VECTORS == 1
#define EACH_SUM(M, r) M(r, 0)
#elif VECTORS == 2
#define EACH_SUM(M, r) M(r, 0) M(r, 1)
#else
#define EACH_SUM(M, r) M(r, 0) M(r, 1) M(r, 2)
#endif

#define CLEAR_SUM(r, v) FLOATV sum_##r##_##v = 0;
#define CLEAR_SUMS_OF(r) EACH_SUM(CLEAR_SUM, r)
#define CLEAR_SUMS EACH_ROW(CLEAR_SUMS_OF)

// One step of a product: TILE packed numbers at a times WIDTH columns at b; moves both on.
#define LOAD_COLUMNS(r, v) const FLOATV b##v = VLOAD(v, b);
#define ADD_PRODUCT(r, v) sum_##r##_##v += a[r] * b##v;
#define ADD_PRODUCTS_OF(r) EACH_SUM(ADD_PRODUCT, r)
#define MULTIPLY_PACKED       \
  {                           \
    EACH_SUM(LOAD_COLUMNS, 0) \
    EACH_ROW(ADD_PRODUCTS_OF) \
    a += TILE;                \
    b += WIDTH;               \
  }
