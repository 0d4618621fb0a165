#include "tools/tcc-run/RateCurve.h"

#include "tools/cli/Picture.h"

#include <algorithm>
#include <cmath>
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

static Picture::Points getLine(const std::vector<RatePoint> &points,
                               double RatePoint::*value) {
  Picture::Points line;
  for (const RatePoint &point : points)
    line.emplace_back(point.rate, point.*value);
  return line;
}

static std::string nameRate(const char *name, double rate) {
  char text[64];
  std::snprintf(text, sizeof(text), "%s %.2g", name, rate);
  return text;
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
  Picture picture({"learning rate", first, last, /*isLogarithmic=*/true},
                  {"loss", std::isfinite(low) ? low : 0, high});
  picture.addLine(getLine(points, &RatePoint::loss), "stroke=\"#bbb\"");
  picture.addLine(getLine(points, &RatePoint::smooth),
                  "stroke=\"#06c\" stroke-width=\"2\"");
  if (auto rate = findSteepest())
    picture.addMark(*rate, nameRate("steepest", *rate), "#c30", 14);
  if (auto rate = findTenth())
    picture.addMark(*rate, nameRate("a tenth of the lowest", *rate), "#383",
                    30);
  return picture.finish();
}
