export type Theme = 'system' | 'light' | 'dark';

const KEY = 'escapement-theme';

/** The theme that the reader has chosen in this browser. */
export function storedTheme(): Theme {
  try {
    const stored = localStorage.getItem(KEY);
    return stored === 'light' || stored === 'dark' ? stored : 'system';
  } catch {
    // Storage is refused in some private windows.
    return 'system';
  }
}

export function applyTheme(theme: Theme): void {
  document.documentElement.style.colorScheme = theme === 'system' ? '' : theme;
}

export function storeTheme(theme: Theme): void {
  applyTheme(theme);
  dispatchEvent(new Event('themechange'));
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // It lasts until the page is left.
  }
}
