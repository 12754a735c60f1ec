import type { ComponentChildren, JSX } from 'preact';
import { withQuery } from './api.ts';
import { Loaded } from './parts.tsx';
import { pageOf, useRoute, withChange } from './route.ts';
import { useData } from './use-data.ts';

/** Tables, their pages, and lists of facts. */

/** A column of a table: its head, and what the rows have in it. */
export interface Column<Row> {
  readonly head: ComponentChildren;
  readonly cell: (row: Row) => ComponentChildren;
  /** Class of the head and the cells. */
  readonly kind?: string;
  readonly sort?: 'ascending' | 'descending' | 'none';
  /** Name before a cell, on a phone; by default the head, if that is a text. Empty: none, as before the first cell. */
  readonly label?: string;
  /** Whether its cells are the headings of their rows. */
  readonly isHeading?: boolean;
}

export const numbers = <Row,>(head: string, cell: Column<Row>['cell']): Column<Row> => ({
  ...{ head, cell, kind: 'number' },
});

/** Rows, which are cards on a phone. */
export function Table<Row>(props: {
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row, index: number) => string | number;
  readonly kind?: string;
  readonly label?: string;
  readonly isPicked?: (row: Row) => boolean;
}): JSX.Element {
  const { columns, rows, keyOf, kind = '', label, isPicked } = props;
  return (
    <div class="scroll">
      <table class={`rows ${kind}`} aria-label={label}>
        <thead>
          <tr>
            {columns.map((column, at) => (
              <th key={at} scope="col" class={column.kind} aria-sort={column.sort}>
                {column.head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (
            <tr key={keyOf(row, index)} class={isPicked?.(row) === true ? 'picked' : ''}>
              {columns.map((column, at) => (
                <Cell key={at} column={column} row={row} isFirst={at === 0} />
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Cell<Row>(props: {
  readonly column: Column<Row>;
  readonly row: Row;
  readonly isFirst: boolean;
}): JSX.Element {
  const { head, kind, label = head, isHeading = false, cell } = props.column;
  const Element = isHeading ? 'th' : 'td';
  const name = typeof label === 'string' && label !== '' && !props.isFirst ? label : undefined;
  return (
    <Element class={kind} scope={isHeading ? 'row' : undefined} data-label={name}>
      {cell(props.row)}
    </Element>
  );
}

/** Links to the pages before and after the one in the address. */
export function Pager({ pages }: { readonly pages: number }): JSX.Element | null {
  const route = useRoute();
  const page = pageOf(route);
  const link = (to: number, label: string, isThere: boolean): JSX.Element =>
    isThere ? (
      <a class="button" href={withChange(route, { page: to })}>
        {label}
      </a>
    ) : (
      <span class="button" aria-disabled="true">
        {label}
      </span>
    );
  if (pages <= 1 && page === 1) return null;
  return (
    <nav class="pager" aria-label="Pages">
      {link(page - 1, 'Previous', page > 1)}
      <span>
        Page {page} of {Math.max(pages, page)}
      </span>
      {link(page + 1, 'Next', page < pages)}
    </nav>
  );
}

/** A list of the API that is read page by page; `empty` if it has nothing. */
export function PagedTable<Row>(props: {
  readonly path: string;
  readonly size: number;
  readonly columns: readonly Column<Row>[];
  readonly keyOf: (row: Row) => string;
  readonly empty: JSX.Element;
}): JSX.Element {
  const { path, size, columns, keyOf, empty } = props;
  const page = pageOf(useRoute());
  const list = useData<readonly Row[]>(withQuery(path, { page, size }));
  return (
    <Loaded of={list}>
      {(rows) => (
        <>
          {rows.length === 0 ? empty : <Table columns={columns} rows={rows} keyOf={keyOf} />}
          <Pager pages={rows.length === size ? page + 1 : page} />
        </>
      )}
    </Loaded>
  );
}

/** Terms and their values, without those that have none. */
export function Facts(props: {
  readonly kind?: string;
  readonly list: readonly (readonly [term: string, value: ComponentChildren])[];
}): JSX.Element {
  const shown = props.list.filter(([, value]) => value !== undefined && value !== false);
  return (
    <dl class={`facts ${props.kind ?? ''}`}>
      {shown.map(([term, value], index) => (
        <div key={index}>
          <dt>{term}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
