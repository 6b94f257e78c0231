"""Tables declared as classes, their columns as attributes, without SQLAlchemy's object mapper.

Nothing here maps rows to objects; loading the mapper took every command a tenth of its start.
"""

from typing import Any

from sqlalchemy import Column, ColumnElement, MetaData, Table


class Declared(type):
    """Makes a `Table` of each class that names one; SQLAlchemy takes the class for its table.

    A class has `__tablename__`, columns and perhaps `__table_args__`; `metadata` is inherited.
    """

    __table__: Table
    metadata: MetaData

    def __init__(cls, name: str, bases: tuple[type, ...], fields: dict[str, Any]) -> None:
        super().__init__(name, bases, fields)
        if "__tablename__" in fields:
            columns = [cls._named(key, value) for key, value in fields.items()]
            cls.__table__ = Table(
                fields["__tablename__"],
                cls.metadata,
                *(found for found in columns if found is not None),
                *fields.get("__table_args__", ()),
            )

    @staticmethod
    def _named(key: str, value: object) -> Column[Any] | None:
        if not isinstance(value, Column):
            return None
        value.name = value.key = key
        return value

    def __clause_element__(cls) -> Table:
        """Return the table, wherever a statement was given the class."""
        return cls.__table__


def column(*parts: Any, **options: Any) -> ColumnElement[Any]:
    """Return a column that always has a value; the class that holds it gives it its name."""
    return Column(*parts, **{"nullable": False, **options})


def optional(*parts: Any, **options: Any) -> ColumnElement[Any]:
    """Return a column that may be null."""
    return Column(*parts, nullable=True, **options)
