/** The collector's process: listens until its parent says stop, or is gone. */
import { hangUp, onOrder, optionsOfChild, report } from './child-protocol.ts';
import { Collector, type CollectorOptions } from './collector.ts';

const collector = new Collector(optionsOfChild() as CollectorOptions);
const port = await collector.listen();
onOrder(() => {
  void collector.close().then(hangUp);
});
report({ port });
