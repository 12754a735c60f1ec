/** A file of the page. */
export interface PageAsset {
  /** `index.html`, or a name with the hash of the content. */
  readonly name: string;
  /** For the header `content-type`. */
  readonly type: string;
  readonly gzipped: Uint8Array;
}

import { gzipSync } from 'node:zlib';

export function readPageAssets(): Promise<readonly PageAsset[]> {
  const html = '<!doctype html><title>escapement</title>\n';
  return Promise.resolve([{ name: 'index.html', type: 'text/html; charset=utf-8', gzipped: gzipSync(html) }]);
}
