import type { PageAsset } from '../../build-page.ts';

export type { PageAsset };

/**
 * Returns the files of the page. In the package, the build has replaced this module by those files (`build-page.ts`); here, they are
 * built on the first call, in about a tenth of a second.
 */
export function readPageAssets(): Promise<readonly PageAsset[]> {
  built ??= import('../../build-page.ts').then(({ buildPage }) => buildPage());
  return built;
}

let built: Promise<readonly PageAsset[]> | undefined;
