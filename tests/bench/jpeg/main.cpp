//===- main.cpp - How fast libjpeg decodes files --------------------------===//
//
// jpeg-decode FILE...
// Reads a number of seconds a line, decodes the files over and over for that
// long, each whole, to RGB, and prints a JSON line: the milliseconds of each
// 256 of them, those of this thread. tests/bench/load.py relates the loader to
// it.
//
//===----------------------------------------------------------------------===//
#include <cstdio>
#include <ctime>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include <jpeglib.h>

using Bytes = std::vector<unsigned char>;

static constexpr size_t kBatch =
    8 * 32; // files of one time, as load_worker.py has them

static double threadSeconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return double(time.tv_sec) + double(time.tv_nsec) * 1e-9;
}

/// An error of the library ends the program.
static void decode(const Bytes &file, Bytes &pixels) {
  jpeg_decompress_struct info;
  jpeg_error_mgr errors;
  info.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&info);
  jpeg_mem_src(&info, file.data(), file.size());
  jpeg_read_header(&info, TRUE);
  jpeg_start_decompress(&info);
  size_t stride = size_t(info.output_width) * size_t(info.output_components);
  pixels.resize(stride * info.output_height);
  while (info.output_scanline < info.output_height) {
    JSAMPROW row = pixels.data() + stride * info.output_scanline;
    jpeg_read_scanlines(&info, &row, 1);
  }
  jpeg_finish_decompress(&info);
  jpeg_destroy_decompress(&info);
}

int main(int argc, char **argv) {
  std::vector<Bytes> files;
  for (int i = 1; i < argc; ++i) {
    std::ifstream stream(argv[i], std::ios::binary);
    files.emplace_back(std::istreambuf_iterator<char>(stream),
                       std::istreambuf_iterator<char>());
  }
  if (files.empty())
    return 2;
  Bytes pixels;
  size_t next = 0;
  for (double seconds; std::cin >> seconds;) {
    double begin = threadSeconds(), before = begin;
    std::string times;
    do {
      for (size_t i = 0; i < kBatch; ++i)
        decode(files[next++ % files.size()], pixels);
      double now = threadSeconds();
      times +=
          (times.empty() ? "" : ", ") + std::to_string((now - before) * 1e3);
      before = now;
    } while (before - begin < seconds);
    std::printf("{\"ms\": [%s], \"cpu\": %f}\n", times.c_str(), before - begin);
    std::fflush(stdout);
  }
  return 0;
}
