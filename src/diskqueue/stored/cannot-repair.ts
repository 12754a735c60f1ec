/** Nothing was changed: there is no way to repair it that keeps all messages that are whole where they are. */
export class CannotRepair extends Error {
  override readonly name = 'CannotRepair';
}
