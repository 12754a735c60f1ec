/** A file of the page. */
export interface PageAsset {
  /** `index.html`, or a name with the hash of the content. */
  readonly name: string;
  /** For the header `content-type`. */
  readonly type: string;
  readonly gzipped: Uint8Array;
}

/**
 * Returns the files of the page. In the package, the build has replaced this module by those files (`build-page.ts`); here, they are
 * built on the first call, in about a tenth of a second.
 */
export function readPageAssets(): Promise<readonly PageAsset[]> {
  built ??= import('../../build-page.ts').then(({ buildPage }) => buildPage());
  return built;
}

let built: Promise<readonly PageAsset[]> | undefined;
