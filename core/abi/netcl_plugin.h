/* netcl_plugin.h - the boundary between netcl and its plugins, in plain C11.
 *
 * A plugin is a shared object that exports one function, netcl_plugin_open_v1, beside a manifest
 * plugin.json. The host hands it a table of services (netcl_host); it hands back a description of
 * itself (netcl_plugin_api), from which the host fetches interface tables by name. C++ authors
 * use netcl_plugin.hpp. plugins/README.md is the guide.
 *
 * Ground rules
 *  - Tables and option structs start with `size` = sizeof as the WRITER compiled it; members are
 *    only appended. Readers ask NETCL_HAS before touching a member. Structs that travel in arrays
 *    (netcl_desc, netcl_attr, netcl_arg, netcl_launch, netcl_source, ...) never change layout.
 *  - Text is UTF-8 netcl_str, borrowed for the call. Lists leave through a sink, item by item.
 *  - Whoever creates a handle destroys it. Nothing is freed by the other side.
 *  - No exception, longjmp or C++ type crosses. Plugins do not print, abort, exit or keep global
 *    OpenCL objects. Errors: `return H->fail(call, code, 0, text)`.
 *  - Thread tags: [setup] one thread, before first use; [any] any thread, concurrently;
 *    [group] the host makes one call at a time for one group.
 */
#ifndef NETCL_CORE_ABI_NETCL_PLUGIN_H_
#define NETCL_CORE_ABI_NETCL_PLUGIN_H_
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

/* A newer minor only appends, so a host opens plugins of its own major and of no newer minor. While
 * the major number is 0 that is a practice; from 1.0 on it is a promise. History: CHANGELOG.md. */
#define NETCL_ABI_MAJOR 0u
#define NETCL_ABI_MINOR 4u
#define NETCL_EXPORT __attribute__((visibility("default")))

#define NETCL_END_(tab, m) \
  ((size_t)((const char*)&(tab)->m - (const char*)(tab)) + sizeof((tab)->m))
#define NETCL_HAS(tab, m) ((tab) && (tab)->size >= NETCL_END_(tab, m) && (tab)->m != 0)

typedef struct netcl_str {
  const char* ptr;
  size_t len;
} netcl_str;

/* DECLINE is not a failure: "not me, and why"; the next candidate is asked. */
typedef uint32_t netcl_rc;
enum {
  NETCL_OK = 0,
  NETCL_DECLINE = 1,
  NETCL_E_ARG = 2,
  NETCL_E_STATE = 3,
  NETCL_E_ABI = 4,
  NETCL_E_NOMEM = 5,
  NETCL_E_DEVICE = 6,
  NETCL_E_BUILD = 7,
  NETCL_E_TIMEOUT = 8,
  NETCL_E_PEER = 9,
  NETCL_E_CANCELLED = 10,
  NETCL_E_BUG = 11
};

typedef struct netcl_call netcl_call;     /* one host->plugin call: its error slot and log scope */
typedef struct netcl_device netcl_device; /* host-owned; lives as long as the runtime            */
typedef struct netcl_graph netcl_graph;   /* records core ops while a layer traces itself        */
typedef struct netcl_boot netcl_boot;     /* set-up channel between the ranks of one group       */
typedef struct netcl_plugin netcl_plugin; /* plugin-owned instance                               */
typedef uint32_t netcl_value;             /* a value inside one netcl_graph                      */
typedef netcl_rc (*netcl_sink)(void* ctx, const void* item); /* non-OK stops the emitter         */

typedef enum netcl_dtype_e {
  NETCL_F32 = 1,
  NETCL_F16 = 2,
  NETCL_BF16 = 3,
  NETCL_I32 = 4,
  NETCL_I64 = 5,
  NETCL_U8 = 6,
  NETCL_BOOL = 7
} netcl_dtype_e;

#define NETCL_MAX_RANK 8
/* A dense row-major tensor. In a traced graph a negative dimension -k stands for k x batch size
 * (see netcl_trace_info); a kernel set sees only non-negative dimensions. */
typedef struct netcl_desc {
  uint32_t dtype, rank;
  int64_t dim[NETCL_MAX_RANK];
} netcl_desc;

/* One named attribute. `n` counts the elements of iv and fv. */
typedef struct netcl_attr {
  netcl_str key;
  uint32_t kind, n;
  union {
    int64_t i;
    double f;
    netcl_str s;
    const int64_t* iv;
    const double* fv;
  } u;
} netcl_attr;
enum {
  NETCL_ATTR_INT = 1,
  NETCL_ATTR_FLOAT = 2,
  NETCL_ATTR_STR = 3,
  NETCL_ATTR_INTS = 4,
  NETCL_ATTR_FLOATS = 5,
  NETCL_ATTR_DIMS = 6,  /* iv: a shape, in which -k stands for k x batch size   */
  NETCL_ATTR_BOOL = 7,  /* i: 0 or 1                                            */
  NETCL_ATTR_LAYERS = 8 /* n nested layers; i: their handle for netcl_host.layer */
};

/* ---- what the host lends ----------------------------------------------------------------------
 */

enum { NETCL_LOG_DEBUG = 0, NETCL_LOG_INFO = 1, NETCL_LOG_WARNING = 2, NETCL_LOG_ERROR = 3 };

typedef struct netcl_trace_info {
  size_t size;
  uint32_t training; /* 1 while the training graph is traced, 0 for evaluation */
  uint32_t n_values; /* values recorded so far                                 */
} netcl_trace_info;

enum {
  NETCL_INIT_ZEROS = 0,
  NETCL_INIT_ONES = 1,
  NETCL_INIT_CONSTANT = 2, /* a                       */
  NETCL_INIT_UNIFORM = 3,  /* in [a, b)               */
  NETCL_INIT_NORMAL = 4,   /* mean a, deviation b     */
  /* Since 0.2: */
  NETCL_INIT_TRUNC_NORMAL = 5, /* the same, redrawn outside of a +- 2 b                      */
  NETCL_INIT_ORTHOGONAL = 6    /* rows (or columns, the fewer) of the matrix [first dimension,
                                * the others together] are orthogonal, of length a           */
};
enum { NETCL_MERGE_FIRST = 0, NETCL_MERGE_WEIGHTED_MEAN = 1, NETCL_MERGE_NONE = 2 };
enum { NETCL_ROLE_PARAMETER = 0, NETCL_ROLE_STATISTIC = 1 };

/* A slot that a layer declares while it traces itself. `merge` says how the replicas' values of a
 * STATISTIC become one in data-parallel training; parameters are always equal. */
typedef struct netcl_slot {
  size_t size;
  netcl_str name; /* "weight"; the host prefixes the layer's path */
  netcl_desc desc;
  uint32_t role, init, merge, reserved;
  double a, b;
} netcl_slot;

typedef struct netcl_host {
  size_t size;
  uint32_t abi_major, abi_minor; /* those of the plugin's manifest: a newer host says so, too */
  netcl_str version;
  /* diagnostics [any]; fail() stores the text and returns `code` */
  void (*log)(netcl_call*, uint32_t level, netcl_str text);
  netcl_rc (*fail)(netcl_call*, netcl_rc code, int64_t native_code, netcl_str text);
  /* device facts [any]. Integers: "compute_units" "local_mem_bytes" "max_work_group"
   * "max_alloc_bytes" "global_mem_bytes" "unified_memory" "vector_width_float" "is_cpu" "is_gpu"
   * "base_align_bytes" "subgroup_min" "subgroup_max" (sizes of sub-groups, 0: not known). Text (one
   * netcl_str to the sink): "name" "vendor" "platform" "arch" "driver" "extensions" "opencl". Unknown
   * names: NETCL_E_ARG. */
  netcl_rc (*device_int)(netcl_call*, netcl_device*, netcl_str name, int64_t* value);
  netcl_rc (*device_text)(netcl_call*, netcl_device*, netcl_str name, netcl_sink, void* ctx);
  /* raw OpenCL handles: cl_platform_id, cl_device_id, cl_context */
  netcl_rc (*device_cl)(netcl_call*, netcl_device*, void** platform, void** device, void** context);
  /* the directory of the plugin, where its data files lie [any] */
  netcl_rc (*plugin_dir)(netcl_call*, netcl_sink, void* ctx);

  /* tracing [any], only inside netcl_layer_api.trace */
  netcl_rc (*trace_info)(netcl_call*, netcl_graph*, netcl_trace_info*);
  netcl_rc (*value_desc)(netcl_call*, netcl_graph*, netcl_value, netcl_desc*);
  netcl_rc (*op)(netcl_call*, netcl_graph*, netcl_str op, const netcl_value* in, uint32_t n_in,
                 const netcl_attr* attrs, uint32_t n_attrs, netcl_value* out, uint32_t n_out);
  netcl_rc (*slot)(netcl_call*, netcl_graph*, const netcl_slot*, netcl_value* out);
  /* assigns the next value of a STATISTIC slot; takes effect when the step is committed */
  netcl_rc (*update_slot)(netcl_call*, netcl_graph*, netcl_value slot, netcl_value next);
  /* the step's random state (a value to pass to random ops) and a stream id of this layer's own */
  netcl_rc (*random_stream)(netcl_call*, netcl_graph*, netcl_value* state, int64_t* stream);
  /* traces layer `index` of an attribute of kind NETCL_ATTR_LAYERS (handle: its u.i) */
  netcl_rc (*layer)(netcl_call*, netcl_graph*, int64_t handle, uint32_t index,
                    const netcl_value* in, uint32_t n_in, netcl_value* out, uint32_t n_out);

  /* set-up between the ranks of a group, for transports. Every rank must call these in the same
   * order; they return NETCL_E_PEER when a rank has died and NETCL_E_TIMEOUT when one is late. */
  /* all[rank] of `bytes` each receives every rank's `mine` (bytes <= 256) */
  netcl_rc (*boot_exchange)(netcl_call*, netcl_boot*, const void* mine, uint32_t bytes, void* all);
  /* zeroed memory that all ranks see, page-aligned, freed when the group closes */
  netcl_rc (*boot_shared)(netcl_call*, netcl_boot*, uint64_t bytes, void** memory);
  /* [any] NETCL_OK, or NETCL_E_PEER with the reason once the group is aborted: poll while waiting
   */
  netcl_rc (*boot_status)(netcl_call*, netcl_boot*);
  /* tracing: traces a layer of type `type` as the part `name` of this one: its slots are called
   * "<path>.<name>.<slot>". `attrs` are keys of that type, others have their default; no nested
   * layers. Since 0.2. */
  netcl_rc (*sublayer)(netcl_call*, netcl_graph*, netcl_str name, netcl_str type,
                       const netcl_attr* attrs, uint32_t n_attrs, const netcl_value* in,
                       uint32_t n_in, netcl_value* out, uint32_t n_out);
  /* tracing: says that `out`, which this trace made from `in` alone, is what the op "vendor.op"
   * computes, for which a kernel set (this plugin's own "netcl.kernels/1", too) may have kernels.
   * `own` receives n_out values to go on with in place of `out`. For every device and every shape
   * the kernel sets are asked; where none serves, the recorded ops run. Parameters that the ops
   * read are inputs, too; random ops and all_reduce cannot lie in between. `attrs` are for the
   * kernels.
   * The gradient is the op "vendor.op.grad", with the same attributes; inputs: in..., out..., and
   * the gradients of the float ones of out...; outputs: the gradients of the float ones of in... .
   * Where no kernel set serves it, it comes from the recorded ops. Since 0.4. */
  netcl_rc (*fused)(netcl_call*, netcl_graph*, netcl_str op, const netcl_value* in, uint32_t n_in,
                    const netcl_attr* attrs, uint32_t n_attrs, const netcl_value* out,
                    uint32_t n_out, netcl_value* own);
  /* ---- append here ---- */
} netcl_host;

/* ---- what the plugin gives back ---------------------------------------------------------------
 */

typedef struct netcl_plugin_api {
  size_t size; /* set by the host; the plugin must not write beyond it */
  uint32_t abi_major, abi_minor;
  netcl_str id, version; /* must equal the manifest; live as long as the plugin */
  netcl_plugin* self;
  /* [any] the interface table of that name, or NULL */
  const void* (*query)(netcl_plugin*, netcl_str interface_name);
  void (*close)(netcl_plugin*); /* [setup] idempotent */
} netcl_plugin_api;

typedef netcl_rc (*netcl_plugin_open_fn)(const netcl_host*, netcl_call*, netcl_plugin_api* out);
#define NETCL_OPEN_SYMBOL "netcl_plugin_open_v1"

/* ---- kernel sets: "netcl.kernels/1" -----------------------------------------------------------
 */

enum { NETCL_NUM_STRICT_FP32 = 0u, NETCL_NUM_REPRODUCIBLE = 1u, NETCL_NUM_TF32 = 2u };

/* The question put to a kernel set. Attributes hold the op's own and the shape facts that the host
 * derives for it (kernels/README.md lists them for every op), those of a fused op what the layer
 * gave. `family` is "elementwise" or "" . */
typedef struct netcl_opkey {
  size_t size;
  netcl_str op, family;
  uint32_t n_in, n_out, n_attrs, numerics;
  const netcl_desc *in, *out;
  const netcl_attr* attrs;
} netcl_opkey;

typedef struct netcl_arg {
  uint32_t kind, index; /* index: which input, output or scratch buffer */
  union {
    int64_t i;
    double f;
    uint64_t bytes;
    const int32_t* v8; /* eight int32, passed by value as int8 */
  } u;
} netcl_arg;
enum {
  NETCL_ARG_INPUT = 1,
  NETCL_ARG_OUTPUT = 2,
  NETCL_ARG_SCRATCH = 3,
  NETCL_ARG_LOCAL = 4, /* u.bytes of local memory */
  NETCL_ARG_I32 = 5,
  NETCL_ARG_I64 = 6,
  NETCL_ARG_F32 = 7,
  NETCL_ARG_I32X8 = 8
};

typedef struct netcl_source { /* one piece of OpenCL C; a program is their concatenation */
  netcl_str name, text;
} netcl_source;

typedef struct netcl_launch {
  netcl_str entry, options;
  const netcl_source* sources;
  const netcl_arg* args;
  uint32_t n_sources, n_args, dims, reserved;
  uint64_t global[3], local[3]; /* local[0] == 0: the driver chooses. A zero in global: no launch */
} netcl_launch;

/* Work that a vendor's library enqueues, for kernel sets that are made of one. Since 0.4. */
typedef struct netcl_native {
  size_t size;
  void* state; /* the plugin's own, for this recipe alone */
  /* [queue: one call at a time for one queue] Enqueues the op on `queue`, a cl_command_queue in
   * order, and returns without waiting. Buffers are cl_mem, as many as the key has inputs and
   * outputs and the recipe scratch buffers; inputs are not written. Unless `event` is NULL it
   * receives the cl_event of the last command, which the host releases, or NULL if it is not known.
   */
  netcl_rc (*enqueue)(netcl_plugin*, netcl_call*, void* state, void* queue, void* const* in,
                      void* const* out, void* const* scratch, void** event);
  void (*drop)(netcl_plugin*, void* state); /* [any] once, when the recipe is used no longer */
} netcl_native;

/* How to compute one op key: plain data, valid during the sink call. The host copies and checks it
 * once (argument indices, sizes, device limits) and replays it; no plugin call happens per launch,
 * unless there is native work. */
typedef struct netcl_recipe {
  size_t size;
  netcl_str variant;
  const netcl_launch* launches;
  const uint64_t* scratch_bytes;
  uint32_t n_launches, n_scratch;
  const netcl_native* native; /* NULL, or what comes before the launches; copied. Since 0.4. */
} netcl_recipe;

typedef struct netcl_variant {
  netcl_str id;
  netcl_str detail; /* what it needs, in words */
} netcl_variant;

/* A knob of a variant: whole numbers of which tuning looks for the best (netcl-app tune). */
typedef struct netcl_tunable {
  netcl_str name;        /* "ROWS"                                                      */
  const int64_t* values; /* those worth trying                                          */
  uint32_t n_values, reserved;
  int64_t def; /* used unasked; need not be among `values`                              */
} netcl_tunable;

typedef struct netcl_kernels_api {
  size_t size;
  /* [any] Emits one netcl_recipe. `variant` empty: the set's own best choice. Otherwise the id of a
   * variant, which may set some of its tunables: "vec(ROWS=24,DEPTH=8)"; the others have their
   * default. DECLINE with a reason if the key, the variant or a setting cannot be served on this
   * device. The recipe's `variant` is the id with those settings that differ from the defaults. */
  netcl_rc (*plan)(netcl_plugin*, netcl_call*, netcl_device*, const netcl_opkey*, netcl_str variant,
                   netcl_sink, void* ctx);
  /* [any] Emits a netcl_variant for each variant of the op, best guess first. */
  netcl_rc (*enumerate)(netcl_plugin*, netcl_call*, netcl_device*, const netcl_opkey*, netcl_sink,
                        void* ctx);
  /* [any] Emits a netcl_tunable for each knob of the variant, as this key on this device has it; no
   * item: the variant has none. May be NULL. Since 0.4. */
  netcl_rc (*tunables)(netcl_plugin*, netcl_call*, netcl_device*, const netcl_opkey*,
                       netcl_str variant, netcl_sink, void* ctx);
} netcl_kernels_api;
#define NETCL_KERNELS_INTERFACE "netcl.kernels/1"

/* ---- layers: "netcl.layer/1" ------------------------------------------------------------------
 */

enum { NETCL_ATTR_REQUIRED = 1u };
typedef struct netcl_attr_spec { /* one key of a layer's configuration */
  netcl_attr def;                /* key, kind and default value                              */
  uint32_t flags, reserved;      /* NETCL_ATTR_REQUIRED: no default                          */
  double min, max;               /* inclusive limits of numbers; both 0: no limits           */
  netcl_str choices;             /* for text: the allowed words, separated by '|'; or empty  */
  netcl_str doc;
} netcl_attr_spec;

typedef struct netcl_layer_type {
  netcl_str name; /* "vendor.type"; short names are kept for netcl's own plugins */
  netcl_str doc;
  const netcl_attr_spec* attrs;
  uint32_t n_attrs, n_in, n_out, reserved;
} netcl_layer_type;

typedef struct netcl_layer_api {
  size_t size;
  netcl_rc (*types)(netcl_plugin*, netcl_call*, netcl_sink, void* ctx); /* [any] netcl_layer_type */
  /* [any] Says the layer in core ops. `attrs` holds every key of the type: given values are checked
   * against the specification, absent ones have their default. Slots, random streams and nested
   * layers are declared through the host. Backward comes from the ops. */
  netcl_rc (*trace)(netcl_plugin*, netcl_call*, netcl_str type, const netcl_attr* attrs,
                    uint32_t n_attrs, netcl_graph*, const netcl_value* in, uint32_t n_in,
                    netcl_value* out, uint32_t n_out);
} netcl_layer_api;
#define NETCL_LAYER_INTERFACE "netcl.layer/1"

/* ---- reduction transports: "netcl.transport/1" ------------------------------------------------
 */

typedef struct netcl_member {
  uint32_t rank, host, process, context; /* equal numbers: same machine, process, cl_context */
} netcl_member;

typedef struct netcl_group_spec {
  size_t size;
  uint32_t rank, n_ranks;
  const netcl_member* members;
  netcl_device* device; /* this rank's */
  netcl_boot* boot;
  uint64_t timeout_ns; /* longest wait for a peer inside one collective */
} netcl_group_spec;

/* Memory of a bucket, made by the transport. A kernel writes `send`; after a collective the result
 * lies in `recv` (they may be the same buffer). cl_mem of the rank's context. */
typedef struct netcl_bucket {
  size_t size;
  void* handle; /* the transport's own */
  void *send, *recv;
  uint64_t bytes;
} netcl_bucket;

/* What lies where, of elements [offset, offset + count) of a bucket of n ranks; part r is rank r's:
 *   ALL_REDUCE      send: all on every rank               recv: all on every rank
 *   BROADCAST       send: all on the root                 recv: all on every rank
 *   REDUCE_SCATTER  send: all on every rank               recv: part r on rank r
 *   ALL_GATHER      send: part r on rank r                recv: all on every rank
 *   SCATTER         send: all on the root                 recv: part r on rank r
 *   GATHER          send: part r on rank r                recv: all on the root
 * A part lies at its own place within the range, on every rank. What is not named under `recv` is
 * undefined after the collective. */
enum {
  NETCL_ALL_REDUCE = 1,
  NETCL_BROADCAST = 2,
  NETCL_BARRIER = 3,
  NETCL_REDUCE_SCATTER = 4,
  NETCL_ALL_GATHER = 5,
  NETCL_SCATTER = 6,
  NETCL_GATHER = 7
};
/* Reductions are element-wise and in rank order: ((x0 op x1) op x2) ... Integers wrap; max and min
 * keep the first of equal values and pass NaN on; f16 and bf16 are computed in f32 and rounded
 * once, at the end. MEAN: (w0 x0 + w1 x1 + ...) / (w0 + w1 + ...) with the ranks' weights; a rank
 * with weight 0 contributes nothing, whatever its data; of integers the sum, which does not wrap,
 * by n, cut towards zero, and all weights 1. */
enum { NETCL_SUM = 1, NETCL_MAX = 2, NETCL_MIN = 3, NETCL_PROD = 4, NETCL_MEAN = 5 };

typedef struct netcl_coll {
  size_t size;
  uint32_t kind, dtype, redop, root;
  uint64_t offset_bytes, count; /* elements [offset, offset + count) of the bucket */
  const netcl_bucket* bucket;
  void* ready;    /* cl_event after which `send` holds the data, or NULL: it already does */
  netcl_str name; /* for messages: "gradients", "bucket 3" */
  /* elements of each rank's part, which add up to `count`, the same on all ranks; or NULL: as equal
   * as can be, the first ranks one more. Valid during `post`. Since 0.3. */
  const uint64_t* counts;
  double weight; /* this rank's, for MEAN. Since 0.3. */
  /* of NETCL_COLL_*, the same on all ranks; absent (by `size`) means 0. Since 0.3. */
  uint32_t flags, reserved;
} netcl_coll;

/* The device goes on with work that does not need the result: a kernel of the transport would come
 * after all of it, copies would not. */
enum { NETCL_COLL_OVERLAPPED = 1u };

enum { NETCL_TC_CROSS_PROCESS = 1u, NETCL_TC_CROSS_HOST = 2u };

typedef struct netcl_transport_api {
  size_t size;
  uint32_t caps, reserved;
  /* [any] OK, or DECLINE with the first pair that cannot be served and why */
  netcl_rc (*accept)(netcl_plugin*, netcl_call*, const netcl_group_spec*);
  netcl_rc (*open)(netcl_plugin*, netcl_call*, const netcl_group_spec*, void** group);
  /* [group] every rank asks for the same size, in the same order */
  netcl_rc (*bucket_new)(netcl_plugin*, netcl_call*, void* group, uint64_t bytes, netcl_bucket*);
  void (*bucket_free)(netcl_plugin*, void* group, netcl_bucket*);
  /* [group] starts a collective and returns at once; they complete in the order posted */
  netcl_rc (*post)(netcl_plugin*, netcl_call*, void* group, const netcl_coll*, uint64_t* ticket);
  /* [group] returns when `recv` holds the result for any command enqueued from now on */
  netcl_rc (*wait)(netcl_plugin*, netcl_call*, void* group, uint64_t ticket);
  /* [any] makes every present and later wait of this rank return NETCL_E_CANCELLED */
  void (*abort)(netcl_plugin*, void* group, netcl_str reason);
  void (*close)(netcl_plugin*, void* group);
} netcl_transport_api;
#define NETCL_TRANSPORT_INTERFACE "netcl.transport/1"

#ifdef __cplusplus
} /* extern "C" */
#define NETCL_ABI_ASSERT_(cond) static_assert(cond, "netcl ABI layout moved")
#else
#define NETCL_ABI_ASSERT_(cond) _Static_assert(cond, "netcl ABI layout moved")
#endif
/* These never change. */
NETCL_ABI_ASSERT_(sizeof(netcl_str) == 16);
NETCL_ABI_ASSERT_(sizeof(netcl_desc) == 72);
NETCL_ABI_ASSERT_(sizeof(netcl_attr) == 40);
NETCL_ABI_ASSERT_(sizeof(netcl_arg) == 16);
NETCL_ABI_ASSERT_(sizeof(netcl_source) == 32);
NETCL_ABI_ASSERT_(sizeof(netcl_launch) == 112);
NETCL_ABI_ASSERT_(sizeof(netcl_variant) == 32);
NETCL_ABI_ASSERT_(sizeof(netcl_tunable) == 40);
NETCL_ABI_ASSERT_(sizeof(netcl_attr_spec) == 96);
NETCL_ABI_ASSERT_(sizeof(netcl_layer_type) == 56);
NETCL_ABI_ASSERT_(sizeof(netcl_member) == 16);
/* These grow at their end: what came later begins where the version before ended. */
NETCL_ABI_ASSERT_(offsetof(netcl_host, sublayer) == 160); /* 0.1 ended here */
NETCL_ABI_ASSERT_(offsetof(netcl_host, fused) == 168);    /* 0.2            */
NETCL_ABI_ASSERT_(sizeof(netcl_host) == 176);
NETCL_ABI_ASSERT_(offsetof(netcl_coll, counts) == 72); /* 0.1 */
NETCL_ABI_ASSERT_(sizeof(netcl_coll) == 96);
NETCL_ABI_ASSERT_(offsetof(netcl_recipe, native) == 48); /* 0.1 */
NETCL_ABI_ASSERT_(sizeof(netcl_recipe) == 56);
NETCL_ABI_ASSERT_(offsetof(netcl_kernels_api, tunables) == 24); /* 0.1 */
NETCL_ABI_ASSERT_(sizeof(netcl_kernels_api) == 32);
NETCL_ABI_ASSERT_(sizeof(netcl_native) == 32);
NETCL_ABI_ASSERT_(sizeof(netcl_trace_info) == 16);
NETCL_ABI_ASSERT_(sizeof(netcl_slot) == 128);
NETCL_ABI_ASSERT_(sizeof(netcl_opkey) == 80);
NETCL_ABI_ASSERT_(sizeof(netcl_plugin_api) == 72);
NETCL_ABI_ASSERT_(sizeof(netcl_layer_api) == 24);
NETCL_ABI_ASSERT_(sizeof(netcl_group_spec) == 48);
NETCL_ABI_ASSERT_(sizeof(netcl_bucket) == 40);
NETCL_ABI_ASSERT_(sizeof(netcl_transport_api) == 80);
#endif
