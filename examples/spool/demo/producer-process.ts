/** The producer's process: writes lines until its parent says stop, or is gone. */
import { hangUp, onOrder, optionsOfChild, report } from './child-protocol.ts';
import { Producer, type ProducerOptions } from './producer.ts';

const producer = new Producer(optionsOfChild() as ProducerOptions, (pid) => {
  report({ shipper: pid });
});
onOrder((order) => {
  producer[order]();
});
report({ result: await producer.run() });
hangUp();
