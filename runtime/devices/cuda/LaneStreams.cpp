#include "runtime/devices/cuda/LaneStreams.h"

#include <utility>

using namespace tcc::runtime::cuda;

Error LaneStreams::create(size_t laneCount, size_t eventCount) {
  lanes.resize(laneCount);
  events.resize(eventCount);
  recorders.resize(eventCount);
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

Error LaneStreams::begin(Timeline *newTimeline) {
  timeline = newTimeline;
  Error error = timeline ? timeline->beginLane(0, lanes[0].stream) : kSuccess;
  if (error == kSuccess && lanes.size() > 1)
    error = driver.eventRecord(begun, lanes[0].stream);
  return error;
}

Error LaneStreams::fork(uint32_t lane) {
  if (lane == 0 || std::exchange(lanes[lane].isForked, true))
    return kSuccess;
  StreamHandle stream = lanes[lane].stream;
  Error error = driver.streamWaitEvent(stream, begun, /*flags=*/0);
  if (error == kSuccess && timeline)
    error = timeline->beginLane(lane, stream);
  return error;
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

Error LaneStreams::record(const Mark &mark) {
  recorders[mark.event] = mark.command;
  Error error = fork(mark.lane);
  if (error == kSuccess)
    error = driver.eventRecord(events[mark.event], lanes[mark.lane].stream);
  return error;
}

Error LaneStreams::await(const Mark &mark) {
  Error error = fork(mark.lane);
  if (error == kSuccess)
    error = driver.streamWaitEvent(lanes[mark.lane].stream, events[mark.event],
                                   /*flags=*/0);
  if (error == kSuccess)
    error = trace({.command = mark.command,
                   .cause = recorders[mark.event],
                   .lane = mark.lane});
  return error;
}
