#include "tools/tcc-run/RateCurve.h"

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>

using namespace tcc::tools;

/// What a loss weighs after the next one; updates on each side of a slope; of
/// the first ones the mean is of few losses.
static constexpr double kMemory = 0.9;
static constexpr size_t kReach = 5, kFirst = 10;

double RateCurve::getRate(int64_t update) const {
  return first * std::pow(last / first, double(update) / double(count - 1));
}

void RateCurve::add(double loss) {
  sum = kMemory * sum + (1 - kMemory) * loss;
  weight = kMemory * weight + (1 - kMemory);
  points.push_back({getRate(int64_t(points.size())), loss, sum / weight});
}

size_t RateCurve::findLowest() const {
  auto isLower = [](const RatePoint &a, const RatePoint &b) {
    return a.smooth < b.smooth;
  };
  return std::min_element(points.begin(), points.end(), isLower) -
         points.begin();
}

bool RateCurve::isOver() const {
  constexpr double kFar = 4;
  if (points.empty())
    return false;
  if (!std::isfinite(points.back().smooth))
    return true;
  double start = points.front().smooth, lowest = points[findLowest()].smooth;
  // Losses may be negative, too: what counts is how far they fell.
  double scale = std::max(std::abs(start), start - lowest);
  return points.back().smooth > start + (kFar - 1) * scale;
}

/// The slope of the line through the points around `center`, over log(rate).
static double fitSlope(const std::vector<RatePoint> &points, size_t center) {
  double n = 0, x = 0, y = 0, xx = 0, xy = 0;
  for (size_t i = center - kReach; i <= center + kReach; ++i) {
    double u = std::log(points[i].rate / points[center].rate);
    n += 1, x += u, y += points[i].smooth;
    xx += u * u, xy += u * points[i].smooth;
  }
  return (n * xy - x * y) / (n * xx - x * x);
}

std::optional<double> RateCurve::findSteepest() const {
  std::optional<double> rate;
  double least = 0;
  size_t end = points.empty() ? 0 : findLowest();
  for (size_t i = kFirst; i + kReach < points.size() && i <= end; ++i) {
    double slope = fitSlope(points, i);
    if (slope < least) {
      least = slope;
      rate = points[i].rate;
    }
  }
  return rate;
}

std::optional<double> RateCurve::findTenth() const {
  size_t lowest = points.empty() ? 0 : findLowest();
  if (lowest == 0)
    return std::nullopt;
  return points[lowest].rate / 10;
}

// --- The picture -------------------------------------------------------------

namespace {

/// Draws in a frame; rates are on a logarithmic axis.
class Picture {
public:
  Picture(double first, double last, double low, double high)
      : first(std::log10(first)), last(std::log10(last)), low(low),
        high(high > low ? high : low + 1) {}

  double x(double rate) const {
    return kLeft + kWidth * (std::log10(rate) - first) / (last - first);
  }
  double y(double loss) const {
    return kTop + kHeight * (high - std::clamp(loss, low, high)) / (high - low);
  }
  void add(const char *format, ...) __attribute__((format(printf, 2, 3)));
  void addAxes();
  void addLine(const std::vector<RatePoint> &points, double RatePoint::*value,
               const char *style);
  void addMark(double rate, const char *name, const char *colour, double at);
  std::string finish() { return text + "</svg>\n"; }

  static constexpr double kLeft = 70, kTop = 30, kWidth = 620, kHeight = 340;

private:
  double first, last, low, high;
  std::string text =
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"720\" height=\"430\" "
      "font-family=\"sans-serif\" font-size=\"13\">\n"
      "<rect width=\"720\" height=\"430\" fill=\"white\"/>\n";
};

} // namespace

void Picture::add(const char *format, ...) {
  char buffer[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(buffer, sizeof(buffer), format, arguments);
  va_end(arguments);
  text += buffer;
}

void Picture::addAxes() {
  constexpr int kLines = 5;
  for (int power = int(std::ceil(first)); power <= int(last); ++power) {
    double at = x(std::pow(10, power));
    add("<path d=\"M%.1f %.1fv%.1f\" stroke=\"#ddd\"/>\n", at, kTop, kHeight);
    add("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">1e%d</text>\n", at,
        kTop + kHeight + 18, power);
  }
  for (int i = 0; i <= kLines; ++i) {
    double loss = low + (high - low) * i / kLines;
    add("<path d=\"M%.1f %.1fh%.1f\" stroke=\"#ddd\"/>\n", kLeft, y(loss),
        kWidth);
    add("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%.4g</text>\n",
        kLeft - 6, y(loss) + 4, loss);
  }
  add("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">learning rate"
      "</text>\n<text x=\"%.1f\" y=\"18\" text-anchor=\"end\">loss</text>\n",
      kLeft + kWidth / 2, kTop + kHeight + 42, kLeft - 6);
}

void Picture::addLine(const std::vector<RatePoint> &points,
                      double RatePoint::*value, const char *style) {
  text += "<polyline fill=\"none\" " + std::string(style) + " points=\"";
  for (const RatePoint &point : points)
    if (std::isfinite(point.*value))
      add("%.1f,%.1f ", x(point.rate), y(point.*value));
  text += "\"/>\n";
}

void Picture::addMark(double rate, const char *name, const char *colour,
                      double at) {
  add("<path d=\"M%.1f %.1fv%.1f\" stroke=\"%s\" stroke-dasharray=\"4\"/>\n",
      x(rate), kTop, kHeight, colour);
  add("<text x=\"%.1f\" y=\"%.1f\" fill=\"%s\">%s %.2g</text>\n", x(rate) + 4,
      kTop + at, colour, name, rate);
}

std::string RateCurve::draw() const {
  double low = INFINITY, high = -INFINITY;
  for (const RatePoint &point : points)
    if (std::isfinite(point.smooth)) {
      low = std::min(low, point.smooth);
      high = std::max(high, point.smooth);
    }
  // What it ends with would hide where it falls.
  if (!points.empty())
    high = std::min(high, low + 1.5 * (points.front().smooth - low));
  Picture picture(first, last, std::isfinite(low) ? low : 0, high);
  picture.addAxes();
  picture.addLine(points, &RatePoint::loss, "stroke=\"#bbb\"");
  picture.addLine(points, &RatePoint::smooth,
                  "stroke=\"#06c\" stroke-width=\"2\"");
  if (auto rate = findSteepest())
    picture.addMark(*rate, "steepest", "#c30", 14);
  if (auto rate = findTenth())
    picture.addMark(*rate, "a tenth of the lowest", "#383", 30);
  return picture.finish();
}
