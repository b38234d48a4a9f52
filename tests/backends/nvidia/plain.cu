// 40 plain CUDA kernels: math functions, divisions, shuffles, atomics, local arrays, calls, printf.
// test_plain_cuda.py compiles them for each architecture and reads every one.
#include <stdio.h>
#include <assert.h>
#define KERNEL extern "C" __global__ void
#define I (blockIdx.x * blockDim.x + threadIdx.x)
KERNEL divide_float(float *o, const float *a) { o[I] = a[I] / a[I + 1]; }
KERNEL divide_float_often(float *o, const float *a) { float s = a[I]; for (int k = 1; k < 9; ++k) s = a[I + k] / s + s / a[k]; o[I] = s; }
KERNEL divide_double(double *o, const double *a) { o[I] = a[I] / a[I + 1] - 1.0 / a[I + 2]; }
KERNEL divide_long(long long *o, const long long *a) { o[I] = a[I] / (a[I + 1] | 1) + a[I + 2] % (a[I + 3] | 1); }
KERNEL divide_unsigned_long(unsigned long long *o, const unsigned long long *a) { o[I] = a[I] / a[I + 1] * (a[I] % a[I + 2]); }
KERNEL divide_int(int *o, const int *a) { o[I] = a[I] / a[I + 1] + a[I + 2] % a[I + 3] + a[I] / 7u; }
KERNEL square_root(float *o, const float *a) { o[I] = sqrtf(a[I]) + __fsqrt_rz(a[I + 1]) + rsqrtf(a[I + 2]) + __frcp_rn(a[I + 3]); }
KERNEL square_root_double(double *o, const double *a) { o[I] = sqrt(a[I]) * rsqrt(a[I + 1]) + cbrt(a[I + 2]); }
KERNEL sines(float *o, const float *a) { float s, c; sincosf(a[I], &s, &c); o[I] = s * c + tanf(a[I + 1]) + sinpif(a[I + 2]); }
KERNEL sine_double(double *o, const double *a) { o[I] = sin(a[I]) + cos(a[I + 1]); }
KERNEL exponentials(float *o, const float *a) { o[I] = expf(a[I]) + logf(a[I + 1]) + powf(a[I + 2], a[I + 3]) + exp2f(a[I]) + log1pf(a[I]); }
KERNEL exponentials_double(double *o, const double *a) { o[I] = exp(a[I]) + log(a[I + 1]) + pow(a[I + 2], a[I + 3]); }
KERNEL special_functions(float *o, const float *a) { o[I] = erff(a[I]) + tgammaf(a[I + 1]) + lgammaf(a[I + 2]) + normcdff(a[I + 3]); }
KERNEL bessel(float *o, const float *a) { o[I] = j0f(a[I]) + y1f(a[I + 1]) + jnf(3, a[I + 2]); }
KERNEL inverse_tangents(float *o, const float *a) { o[I] = atan2f(a[I], a[I + 1]) + asinf(a[I + 2]) + acoshf(a[I + 3]) + hypotf(a[I], a[I + 2]); }
KERNEL remainders(float *o, const float *a) { int q; o[I] = fmodf(a[I], a[I + 1]) + remquof(a[I + 2], a[I + 3], &q) + q; }
KERNEL remainder_double(double *o, const double *a) { o[I] = fmod(a[I], a[I + 1]) + remainder(a[I + 2], a[I]); }
KERNEL round_and_scale(float *o, const float *a) { int e; float m = frexpf(a[I], &e); o[I] = ldexpf(m / a[I + 1], e) + nearbyintf(a[I + 2]) + logbf(a[I]) + nextafterf(a[I], 1.f); }
KERNEL softmax_row(float *o, const float *a, int n) {
  float m = -1e30f, s = 0; for (int k = threadIdx.x; k < n; k += 32) m = fmaxf(m, a[k]);
  for (int d = 16; d; d >>= 1) m = fmaxf(m, __shfl_xor_sync(~0u, m, d));
  for (int k = threadIdx.x; k < n; k += 32) s += expf(a[k] - m);
  for (int d = 16; d; d >>= 1) s += __shfl_xor_sync(~0u, s, d);
  for (int k = threadIdx.x; k < n; k += 32) o[k] = expf(a[k] - m) / s; }
KERNEL shuffles(int *o, const int *a) { int v = a[I]; v += __shfl_up_sync(~0u, v, 3) + __shfl_down_sync(~0u, v, a[0] & 31); if (v & 1) v ^= __shfl_sync(__activemask(), v, v & 31); o[I] = v; }
KERNEL votes(int *o, const int *a, unsigned m) { int v = a[I]; unsigned b = __ballot_sync(m, v > 2); if (v > 2) b += __any_sync(b, v == 7) + __all_sync(b, v != 9) + __match_any_sync(b, v); o[I] = b; }
KERNEL sync_part(int *o, const int *a, unsigned m) { int v = a[I]; if (v & 1) { __syncwarp(m); v += a[v]; __syncwarp(m); } o[I] = v; }
KERNEL reductions(unsigned *o, const unsigned *a) { unsigned v = a[I]; if (v > 3) v = __reduce_add_sync(__activemask(), v) + __reduce_max_sync(__activemask(), v); o[I] = v; }
KERNEL histogram(unsigned *o, const unsigned char *a, int n) {
  __shared__ unsigned h[256]; h[threadIdx.x] = 0; __syncthreads();
  for (int k = I; k < n; k += gridDim.x * blockDim.x) atomicAdd(&h[a[k]], 1u); __syncthreads(); atomicAdd(&o[threadIdx.x], h[threadIdx.x]); }
KERNEL atomics(int *o, float *f, double *d, const int *a) { int v = a[I]; double old = atomicAdd(f, (float)v) + atomicAdd(d, (double)v); atomicMin(o, v); atomicInc((unsigned *)o + 1, 9u); o[I + 4] = atomicCAS(o + 2, v, v + 1) + atomicExch(o + 3, v) + (int)old; }
KERNEL compare_and_swap(float *o, const float *a) { int old = __float_as_int(*o), seen; do { seen = old; old = atomicCAS((int *)o, seen, __float_as_int(fmaxf(a[I] / 3.f, __int_as_float(seen)))); } while (seen != old); }
KERNEL local_array(int *o, const int *a, int n) { int t[32]; for (int k = 0; k < 32; ++k) t[k] = a[k * n]; for (int k = 0; k < n; ++k) t[a[k] & 31] += t[k & 31]; int s = 0; for (int k = 0; k < 32; ++k) s ^= t[k]; o[I] = s; }
KERNEL matrix_multiply(float *o, const float *a, const float *b, int n) {
  __shared__ float x[16][16], y[16][17]; float s = 0; int r = threadIdx.y, c = threadIdx.x;
  for (int k = 0; k < n; k += 16) { x[r][c] = a[(blockIdx.y * 16 + r) * n + k + c]; y[r][c] = b[(k + r) * n + blockIdx.x * 16 + c]; __syncthreads();
    for (int j = 0; j < 16; ++j) s += x[r][j] * y[j][c]; __syncthreads(); }
  o[(blockIdx.y * 16 + r) * n + blockIdx.x * 16 + c] = s; }
KERNEL norm_rows(float *o, const float *a, int n) {
  __shared__ float t[32]; float s = 0; for (int k = threadIdx.x; k < n; k += blockDim.x) s += a[k] * a[k];
  for (int d = 16; d; d >>= 1) s += __shfl_down_sync(~0u, s, d); if (threadIdx.x % 32 == 0) t[threadIdx.x / 32] = s; __syncthreads();
  s = 0; for (int k = 0; k < blockDim.x / 32; ++k) s += t[k]; for (int k = threadIdx.x; k < n; k += blockDim.x) o[k] = a[k] / sqrtf(s / n + 1e-5f); }
__device__ __noinline__ float polynomial(float x, const float *c, int n) { float s = 0; for (int k = 0; k < n; ++k) s = s * x + c[k]; return s; }
KERNEL calls(float *o, const float *a, int n) { float v = a[I]; o[I] = polynomial(v, a, n) + polynomial(v * v, a + n, n + 1) * polynomial(a[1], a, 3); }
__device__ __noinline__ float ratio(float x, float y) { return x > y ? x / y : polynomial(y / x, &x, 1); }
KERNEL nested_calls(float *o, const float *a) { o[I] = ratio(a[I], a[I + 1]) + ratio(a[I + 2], 3.f) / ratio(a[I + 3], a[I]); }
struct State { double x, y, z; };
__device__ __noinline__ State step(State s, double h) { return {s.x + h * (s.y - s.x), s.y + h * (s.x * (28 - s.z) - s.y), s.z + h * (s.x * s.y - s.z * 8 / 3)}; }
KERNEL structures(State *o, const State *a, int n) { State s = a[I]; for (int k = 0; k < n; ++k) s = step(s, 1.0 / n); o[I] = s; }
KERNEL print(const int *a, int n) { if (a[I] > n) printf("%d: %d\n", I, a[I]); }
KERNEL print_float(float *o, const float *a, int n) { float v = a[I], s = 0; for (int k = 0; k < n; ++k) s += v / a[k]; if (s < 0) printf("%f %d\n", s, n); o[I] = s; }
KERNEL assertion(int *o, const int *a, int n) { int v = a[I]; assert(v < n); o[I] = o[v]; }
KERNEL switches(int *o, const int *a) { int v = a[I], r; switch (v) { case 0: r = v + o[1]; break; case 1: r = o[5] / v; break; case 2: r = __popc(o[3]); break; case 3: r = __clz(o[7]) * 3; break; case 4: r = o[2] % o[9]; break; case 5: r = __brev(o[8]); break; default: r = -1; } o[I] = r; }
KERNEL random_numbers(unsigned *o, unsigned n) { unsigned long long s = I; for (unsigned k = 0; k < n; ++k) s = s * 6364136223846793005ULL + 1442695040888963407ULL; o[I] = (unsigned)(s >> 33) % 1000u; }
KERNEL named_barriers(int *o, const int *a, int n) { __shared__ int t[1024]; t[threadIdx.x] = a[I]; int b = threadIdx.x / 64 + 1; asm volatile("bar.sync %0, 64;" ::"r"(b)); o[I] = t[threadIdx.x ^ 1]; asm volatile("bar.sync %0, %1;" ::"r"(b), "r"(n)); o[I + 1] = t[63]; }
KERNEL grid_stride(float4 *o, const float4 *a, float s, size_t n) { for (size_t k = I; k < n; k += (size_t)gridDim.x * blockDim.x) { float4 v = a[k]; o[k] = make_float4(v.x / s, v.y * s, v.z + s, fmaf(v.w, s, 1.f)); } }
KERNEL aggregated_atomics(int *o, const int *a) { int v = a[I]; if (v > 0) { unsigned m = __activemask(), r; asm("mov.u32 %0, %%lanemask_lt;" : "=r"(r)); int first = __ffs(m) - 1, p = 0; if (!(m & r)) p = atomicAdd(o, __popc(m)); o[1 + __shfl_sync(m, p, first) + __popc(m & r)] = v; } }
