// Streams, events and graphs of the simulated driver.

#include "runtime/devices/emulated/DriverCalls.h"

using namespace tcc;
using namespace tcc::emulated;
using namespace tcc::runtime;
using namespace tcc::runtime::cuda;

namespace {

Error streamCreate(StreamHandle *stream, unsigned) {
  return call([&] {
    *stream = toHandle<StreamHandle>(new Stream(getCurrentContext()->schedule));
    return Status();
  });
}

Error streamDestroy(StreamHandle stream) {
  return call(
      [&] {
        Status status = simulator().run(as<Stream>(stream));
        delete &as<Stream>(stream);
        return status;
      },
      kRelease);
}

Error streamSynchronize(StreamHandle stream) {
  return call([&] { return simulator().run(as<Stream>(stream)); });
}

Error streamWaitEvent(StreamHandle stream, EventHandle event, unsigned) {
  return call(
      [&] { return simulator().wait(as<Stream>(stream), as<Event>(event)); });
}

Error streamBeginCapture(StreamHandle stream, int) {
  return call([&]() -> Status {
    if (as<Stream>(stream).captured)
      return Status(Code::Device, "the stream captures already");
    as<Stream>(stream).captured = std::make_unique<Graph>();
    return Status();
  });
}

Error streamEndCapture(StreamHandle stream, GraphHandle *graph) {
  return call([&]() -> Status {
    if (!as<Stream>(stream).captured)
      return Status(Code::Device, "the stream does not capture");
    *graph = toHandle<GraphHandle>(as<Stream>(stream).captured.release());
    return Status();
  });
}

Error eventCreate(EventHandle *event, unsigned) {
  return call([&] {
    *event = toHandle<EventHandle>(new Event);
    return Status();
  });
}

Error eventDestroy(EventHandle event) {
  return call(
      [&] {
        Status status = simulator().synchronize(as<Event>(event));
        delete &as<Event>(event);
        return status;
      },
      kRelease);
}

Error eventRecord(EventHandle event, StreamHandle stream) {
  return call(
      [&] { return simulator().record(as<Event>(event), as<Stream>(stream)); });
}

Error eventSynchronize(EventHandle event) {
  return call([&] { return simulator().synchronize(as<Event>(event)); });
}

Error graphInstantiate(GraphExecHandle *exec, GraphHandle graph,
                       unsigned long long) {
  return call([&] {
    *exec = toHandle<GraphExecHandle>(new Graph(as<Graph>(graph)));
    return Status();
  });
}

Error graphDestroy(GraphHandle graph) {
  return call(
      [&] {
        delete &as<Graph>(graph);
        return Status();
      },
      kRelease);
}

Error graphExecDestroy(GraphExecHandle exec) {
  return call(
      [&] {
        delete &as<Graph>(exec);
        return Status();
      },
      kRelease);
}

Error graphLaunch(GraphExecHandle exec, StreamHandle stream) {
  return call([&] {
    Operation operation{Operation::Replay};
    operation.graph = &as<Graph>(exec);
    return simulator().enqueue(as<Stream>(stream), std::move(operation));
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
  driver.eventSynchronize = eventSynchronize;
  driver.graphInstantiateWithFlags = graphInstantiate;
  driver.graphDestroy = graphDestroy;
  driver.graphExecDestroy = graphExecDestroy;
  driver.graphLaunch = graphLaunch;
}
