#include "tests/bench/matrix/Peer.h"
#include "dnnl.hpp"
#include <dlfcn.h>
#include <unordered_map>

using namespace dnnl;
using namespace tcc::bench;
using Tag = memory::format_tag;

static constexpr auto f32 = memory::data_type::f32;

/// oneDNN runs on OpenMP's threads; the runtime it brought along is asked for
/// one.
static engine &cpuEngine() {
  static engine instance = [] {
    using SetThreads = void (*)(int);
    if (void *set = dlsym(RTLD_DEFAULT, "omp_set_num_threads"))
      reinterpret_cast<SetThreads>(set)(1);
    return engine(engine::kind::cpu, 0);
  }();
  return instance;
}

static memory filled(const memory::desc &desc) {
  memory m(desc, cpuEngine());
  auto *values = static_cast<float *>(m.get_data_handle());
  for (size_t i = 0; i < desc.get_size() / sizeof(float); ++i)
    values[i] = (i % 13) * 0.1f;
  return m;
}

static std::function<void()> runOf(primitive p, memory src, memory weights,
                                   memory dst) {
  std::unordered_map<int, memory> args = {
      {DNNL_ARG_SRC, src}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DST, dst}};
  return [p, args, s = stream(cpuEngine())]() mutable {
    p.execute(s, args);
    s.wait();
  };
}

std::function<void()> tcc::bench::peerMatmul(MatmulShape shape) {
  memory::desc a({shape.m, shape.k}, f32, Tag::ab);
  memory::desc b({shape.k, shape.n}, f32, Tag::any);
  memory::desc c({shape.m, shape.n}, f32, Tag::ab);
  matmul::primitive_desc pd(matmul::desc(a, b, c), cpuEngine());
  return runOf(matmul(pd), filled(pd.src_desc()), filled(pd.weights_desc()),
               filled(pd.dst_desc()));
}

std::function<void()> tcc::bench::peerConvolution(ConvolutionShape shape,
                                                  bool plainLayout) {
  Tag tag = plainLayout ? Tag::nhwc : Tag::any;
  memory::dim c = shape.channels, f = shape.filters, t = shape.taps;
  memory::dims weights = shape.isDepthwise ? memory::dims{c, 1, 1, t, t}
                                           : memory::dims{f, c, t, t};
  memory::desc src({1, c, shape.size, shape.size}, f32, tag);
  memory::desc wei(weights, f32, Tag::any);
  memory::desc dst({1, f, shape.output(), shape.output()}, f32, tag);
  memory::dims strides(2, shape.stride), pads(2, shape.pad());
  convolution_forward::desc desc(prop_kind::forward_inference,
                                 algorithm::convolution_direct, src, wei, dst,
                                 strides, pads, pads);
  convolution_forward::primitive_desc pd(desc, cpuEngine());
  return runOf(convolution_forward(pd), filled(pd.src_desc()),
               filled(pd.weights_desc()), filled(pd.dst_desc()));
}
