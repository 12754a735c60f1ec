import { describeBothDirections } from '../../interop/diskqueue/both-directions.ts';
import { LARGEST_MESSAGE, type Original } from '../../interop/diskqueue/original.ts';
import { UpstreamModel } from './upstream-model.ts';

/** The same tests, against go-diskqueue itself, are in test/interop: they need Go. */
describeBothDirections('the model', (folder, maxBytesPerFile) =>
  Promise.resolve(
    slowly(new UpstreamModel(folder, 'q', { maxBytesPerFile, maxMessageSize: LARGEST_MESSAGE })),
  ),
);

/** A model that answers as another process would. */
function slowly(model: UpstreamModel): Original {
  const later = <R>(action: () => R): Promise<R> => Promise.resolve().then(action);
  return {
    put: (message) =>
      later(() => {
        model.put(message);
      }),
    receive: () => later(() => model.receive()),
    depth: () => later(() => model.depth),
    empty: () =>
      later(() => {
        model.empty();
      }),
    close: () =>
      later(() => {
        model.close();
      }),
  };
}
