// Streams, events and graphs of the simulated driver.

#include "runtime/devices/emulated/DriverCalls.h"
#include "runtime/devices/emulated/GraphFile.h"

using namespace tcc;
using namespace tcc::emulated;
using namespace tcc::runtime;
using namespace tcc::runtime::cuda;

namespace {

/// What the handles of events and of graphs point to.
using SharedEvent = std::shared_ptr<Event>;
using SharedGraph = std::shared_ptr<Graph>;

/// After a failure nothing is done any more: streams that are waited for may
/// be gone.
template <typename Work> Status unlessFailed(Work work) {
  return getState().failure.empty() ? work() : Status();
}

Error streamCreate(StreamHandle *stream, unsigned) {
  return call([&] {
    auto *created = new Stream(getCurrentContext()->schedule);
    simulator().add(*created);
    *stream = toHandle<StreamHandle>(created);
    return Status();
  });
}

Error streamDestroy(StreamHandle stream) {
  return call(
      [&] {
        Status status =
            unlessFailed([&] { return simulator().run(streamOf(stream)); });
        simulator().remove(streamOf(stream));
        delete &as<Stream>(stream);
        return status;
      },
      kRelease);
}

Error streamSynchronize(StreamHandle stream) {
  return call([&] { return simulator().run(streamOf(stream)); });
}

Error streamWaitEvent(StreamHandle stream, EventHandle event, unsigned) {
  return call([&] {
    return simulator().wait(streamOf(stream), as<SharedEvent>(event));
  });
}

Error streamBeginCapture(StreamHandle stream, int) {
  return call([&] { return simulator().beginCapture(streamOf(stream)); });
}

Error streamEndCapture(StreamHandle stream, GraphHandle *graph) {
  return call([&]() -> Status {
    Result<SharedGraph> captured = simulator().endCapture(streamOf(stream));
    if (!captured.ok())
      return captured.takeStatus();
    Status status = writeGraph(**captured);
    *graph = toHandle<GraphHandle>(new SharedGraph(std::move(*captured)));
    return status;
  });
}

Error eventCreate(EventHandle *event, unsigned) {
  return call([&] {
    *event = toHandle<EventHandle>(new SharedEvent(std::make_shared<Event>()));
    return Status();
  });
}

Error eventDestroy(EventHandle event) {
  return call(
      [&] {
        Event &recorded = *as<SharedEvent>(event);
        Status status;
        if (!recorded.captured)
          status =
              unlessFailed([&] { return simulator().synchronize(recorded); });
        delete &as<SharedEvent>(event);
        return status;
      },
      kRelease);
}

Error eventRecord(EventHandle event, StreamHandle stream) {
  return call([&] {
    return simulator().record(as<SharedEvent>(event), streamOf(stream));
  });
}

/// In a graph alone: each replay records the event itself.
Error eventRecordWithFlags(EventHandle event, StreamHandle stream,
                           unsigned flags) {
  return call([&]() -> Status {
    if (flags != kRecordExternal || !streamOf(stream).captured)
      return Status(Code::Device, "an external event outside a graph");
    return simulator().recordExternal(as<SharedEvent>(event), streamOf(stream));
  });
}

Error eventSynchronize(EventHandle event) {
  return call([&] { return simulator().synchronize(*as<SharedEvent>(event)); });
}

Error eventElapsedTime(float *milliseconds, EventHandle start,
                       EventHandle end) {
  return call([&]() -> Status {
    const Event &first = *as<SharedEvent>(start);
    const Event &last = *as<SharedEvent>(end);
    for (const Event *event : {&first, &last})
      if (event->recorded == 0 || event->done < event->recorded)
        return Status(Code::Device, "the time of an event that is not done");
    *milliseconds =
        static_cast<float>((last.microseconds - first.microseconds) * 1e-3);
    return Status();
  });
}

Error graphInstantiate(GraphExecHandle *exec, GraphHandle graph,
                       unsigned long long) {
  return call([&] {
    *exec = toHandle<GraphExecHandle>(new SharedGraph(as<SharedGraph>(graph)));
    return Status();
  });
}

Error graphDestroy(GraphHandle graph) {
  return call(
      [&] {
        delete &as<SharedGraph>(graph);
        return Status();
      },
      kRelease);
}

Error graphExecDestroy(GraphExecHandle exec) {
  return call(
      [&] {
        delete &as<SharedGraph>(exec);
        return Status();
      },
      kRelease);
}

Error graphLaunch(GraphExecHandle exec, StreamHandle stream) {
  return call([&] {
    Operation operation{Operation::Replay};
    operation.graph = as<SharedGraph>(exec).get();
    return simulator().enqueue(streamOf(stream), std::move(operation));
  });
}

} // namespace

void emulated::addStreamCalls(Driver &driver) {
  driver.streamCreate = streamCreate;
  driver.streamDestroy = streamDestroy;
  driver.streamSynchronize = streamSynchronize;
  driver.streamWaitEvent = streamWaitEvent;
  driver.streamBeginCapture = streamBeginCapture;
  driver.streamEndCapture = streamEndCapture;
  driver.eventCreate = eventCreate;
  driver.eventDestroy = eventDestroy;
  driver.eventRecord = eventRecord;
  driver.eventRecordWithFlags = eventRecordWithFlags;
  driver.eventSynchronize = eventSynchronize;
  driver.eventElapsedTime = eventElapsedTime;
  driver.graphInstantiateWithFlags = graphInstantiate;
  driver.graphDestroy = graphDestroy;
  driver.graphExecDestroy = graphExecDestroy;
  driver.graphLaunch = graphLaunch;
}
