#include "tools/cli/Picture.h"

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>

using namespace tcc::tools;

static constexpr double kLeft = 70, kTop = 30, kWidth = 620, kHeight = 340;

static std::string print(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

static std::string print(const char *format, ...) {
  char buffer[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(buffer, sizeof(buffer), format, arguments);
  va_end(arguments);
  return buffer;
}

static double scale(const Axis &axis, double value) {
  auto at = [&](double number) {
    return axis.isLogarithmic ? std::log10(number) : number;
  };
  return (at(std::clamp(value, axis.low, axis.high)) - at(axis.low)) /
         (at(axis.high) - at(axis.low));
}

Picture::Picture(Axis horizontal, Axis vertical)
    : x(std::move(horizontal)), y(std::move(vertical)) {
  for (Axis *axis : {&x, &y})
    if (axis->high <= axis->low)
      axis->high = axis->low + 1;
  text = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"720\" "
         "height=\"430\" font-family=\"sans-serif\" font-size=\"13\">\n"
         "<rect width=\"720\" height=\"430\" fill=\"white\"/>\n";
  addAxes();
}

double Picture::getX(double value) const {
  return kLeft + kWidth * scale(x, value);
}

double Picture::getY(double value) const {
  return kTop + kHeight * (1 - scale(y, value));
}

/// Where an axis has its lines, with what is written there.
static std::vector<std::pair<double, std::string>> getTicks(const Axis &axis) {
  constexpr int kLines = 5;
  std::vector<std::pair<double, std::string>> ticks;
  if (axis.isLogarithmic)
    for (int power = int(std::ceil(std::log10(axis.low)));
         power <= int(std::log10(axis.high)); ++power)
      ticks.emplace_back(std::pow(10, power), print("1e%d", power));
  else
    for (int i = 0; i <= kLines; ++i) {
      double at = axis.low + (axis.high - axis.low) * i / kLines;
      ticks.emplace_back(at, print("%.4g", at));
    }
  return ticks;
}

void Picture::addAxes() {
  for (const auto &[at, label] : getTicks(x)) {
    text += print("<path d=\"M%.1f %.1fv%.1f\" stroke=\"#ddd\"/>\n", getX(at),
                  kTop, kHeight);
    text += print("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">",
                  getX(at), kTop + kHeight + 18) +
            label + "</text>\n";
  }
  for (const auto &[at, label] : getTicks(y)) {
    text += print("<path d=\"M%.1f %.1fh%.1f\" stroke=\"#ddd\"/>\n", kLeft,
                  getY(at), kWidth);
    text += print("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">", kLeft - 6,
                  getY(at) + 4) +
            label + "</text>\n";
  }
  text += print("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">",
                kLeft + kWidth / 2, kTop + kHeight + 42) +
          x.name + "</text>\n" +
          print("<text x=\"%.1f\" y=\"18\">", kLeft - 40) + y.name +
          "</text>\n";
}

std::string Picture::trace(const Points &points) const {
  std::string path;
  for (auto [at, value] : points)
    if (std::isfinite(value))
      path += print("%.1f,%.1f ", getX(at), getY(value));
  return path;
}

void Picture::addLine(const Points &points, const std::string &style) {
  text += "<polyline fill=\"none\" " + style + " points=\"" + trace(points) +
          "\"/>\n";
}

void Picture::addArea(const Points &points, const std::string &style) {
  if (points.empty())
    return;
  text += "<polygon " + style + " points=\"" +
          print("%.1f,%.1f ", getX(points.front().first), kTop + kHeight) +
          trace(points) +
          print("%.1f,%.1f", getX(points.back().first), kTop + kHeight) +
          "\"/>\n";
}

void Picture::addDot(double at, double value, const std::string &colour) {
  text += print("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"5\" fill=\"", getX(at),
                getY(value)) +
          colour + "\"/>\n";
}

void Picture::addMark(double at, const std::string &name,
                      const std::string &colour, double below) {
  text +=
      print("<path d=\"M%.1f %.1fv%.1f\" stroke=\"", getX(at), kTop, kHeight) +
      colour + "\" stroke-dasharray=\"4\"/>\n";
  text +=
      print("<text x=\"%.1f\" y=\"%.1f\" fill=\"", getX(at) + 4, kTop + below) +
      colour + "\">" + name + "</text>\n";
}
