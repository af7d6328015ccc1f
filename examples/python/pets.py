import os
import sys

from animal_store import AnimalStore, StoreError


def main():
    store = AnimalStore(os.environ.get("STORE_URL", "http://127.0.0.1:4000"), os.environ.get("KEY", ""))
    rex = store.create("Rex", 9007199254740993)
    print(f"added {rex['name']} with the id {rex['id']} in the category {rex['categoryId']}")
    print(f"{sum(1 for _ in store.pets(status='available'))} available by REST")
    query = "query ($after: ID) { pets(after: $after) { id categoryId } }"
    [first, *_] = store.graphql(query, {"after": str(rex["id"] - 1)})["pets"]
    print(f"by GraphQL: id {first['id']}, category {first['categoryId']}")


try:
    main()
except StoreError as error:
    sys.exit(str(error))
