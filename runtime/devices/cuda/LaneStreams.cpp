#include "runtime/devices/cuda/LaneStreams.h"

#include <utility>

using namespace tcc::runtime::cuda;

Error LaneStreams::create(size_t laneCount, size_t eventCount) {
  lanes.resize(laneCount);
  events.resize(eventCount);
  Error error = driver.eventCreate(&begun, kNoTiming);
  for (Lane &lane : lanes) {
    if (error == kSuccess)
      error = driver.streamCreate(&lane.stream, kNonBlocking);
    if (error == kSuccess)
      error = driver.eventCreate(&lane.end, kNoTiming);
  }
  for (EventHandle &event : events)
    if (error == kSuccess)
      error = driver.eventCreate(&event, kNoTiming);
  return error;
}

void LaneStreams::destroy() {
  events.push_back(begun);
  for (Lane &lane : lanes) {
    events.push_back(lane.end);
    if (lane.stream)
      driver.streamDestroy(lane.stream);
  }
  for (EventHandle event : events)
    if (event)
      driver.eventDestroy(event);
  lanes.clear();
  events.clear();
}

void LaneStreams::synchronize() {
  for (Lane &lane : lanes)
    if (lane.stream)
      driver.streamSynchronize(lane.stream);
}

Error LaneStreams::begin() {
  return lanes.size() > 1 ? driver.eventRecord(begun, lanes[0].stream)
                          : kSuccess;
}

Error LaneStreams::fork(uint32_t lane, bool &isFirst) {
  isFirst = lane > 0 && !std::exchange(lanes[lane].isForked, true);
  return isFirst ? driver.streamWaitEvent(lanes[lane].stream, begun,
                                          /*flags=*/0)
                 : kSuccess;
}

Error LaneStreams::join() {
  Error error = kSuccess;
  for (Lane &lane : lanes) {
    if (!std::exchange(lane.isForked, false) || error != kSuccess)
      continue;
    error = driver.eventRecord(lane.end, lane.stream);
    if (error == kSuccess)
      error = driver.streamWaitEvent(lanes[0].stream, lane.end, /*flags=*/0);
  }
  return error;
}

Error LaneStreams::record(uint32_t lane, uint32_t event) {
  return driver.eventRecord(events[event], lanes[lane].stream);
}

Error LaneStreams::await(uint32_t lane, uint32_t event) {
  return driver.streamWaitEvent(lanes[lane].stream, events[event], /*flags=*/0);
}
