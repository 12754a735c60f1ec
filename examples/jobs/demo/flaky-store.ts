import { ImageStore } from '../service/image-store.ts';

/** Every so manieth size is refused when it comes for the first time. */
const EVERY = 9;

/** A storage as one knows them: now and then it refuses, and takes the same thing a little later. */
export class FlakyStore extends ImageStore {
  refusals = 0;
  #sizes = 0;
  readonly #seen = new Set<string>();

  override async putSize(id: string, width: number, image: Uint8Array): Promise<void> {
    const name = `${id}-${width}`;
    const isNew = !this.#seen.has(name);
    this.#seen.add(name);
    if (isNew && ++this.#sizes % EVERY === 0) {
      this.refusals++;
      throw new Error('the storage is busy');
    }
    await super.putSize(id, width, image);
  }
}
