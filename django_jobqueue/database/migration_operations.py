"""Migration operations for what only one kind of database has."""

from typing import Any

from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations.special import RunSQL


class RunSQLOn(RunSQL):
    """Run SQL on databases of one vendor, and nothing on the others."""

    def __init__(self, vendor: str, sql: str, reverse_sql: str) -> None:
        super().__init__(sql, reverse_sql)
        self.vendor = vendor

    def deconstruct(self) -> tuple[str, list[Any], dict[str, Any]]:
        """Return what a written migration needs to make this operation again."""
        kwargs = {"vendor": self.vendor, "sql": self.sql, "reverse_sql": self.reverse_sql}
        return self.__class__.__qualname__, [], kwargs

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: Any,
        to_state: Any,
    ) -> None:
        """Run the SQL, if this is the vendor's database."""
        if schema_editor.connection.vendor == self.vendor:
            super().database_forwards(app_label, schema_editor, from_state, to_state)

    def database_backwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: Any,
        to_state: Any,
    ) -> None:
        """Run the reverse SQL, if this is the vendor's database."""
        if schema_editor.connection.vendor == self.vendor:
            super().database_backwards(app_label, schema_editor, from_state, to_state)

    def describe(self) -> str:
        """Say what this does, for `migrate --plan`."""
        return f"SQL on {self.vendor}: {str(self.sql).split('(')[0].strip()}"
