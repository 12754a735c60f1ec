import { applyTheme, storedTheme } from './theme.ts';

// A classic script in the head, so that the page is never painted in the other theme first.
applyTheme(storedTheme());
