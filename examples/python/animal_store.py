"""A client of the animal store in Python's standard library alone. Python's integers keep an int64 exactly."""

import email.utils
import http.client
import json
import random
import re
import secrets
import time
import urllib.error
import urllib.parse
import urllib.request
from datetime import datetime, timezone


class StoreError(Exception):
    """An error of the service. Decide by `code`; `retry_after` is in seconds, or None."""

    def __init__(self, code, message, status=None, retry_after=None):
        super().__init__(f"{code}: {message}")
        self.code = code
        self.status = status
        self.retry_after = retry_after


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Refuses redirects, which could send the key to another host."""

    def redirect_request(self, *_):
        return None


class AnimalStore:
    def __init__(self, url, key, retries=4, seconds=60.0):
        """`seconds` limits a call with all its attempts."""
        self._url = url.rstrip("/")
        self._key = key
        self._retries = retries
        self._seconds = seconds
        self._opener = urllib.request.build_opener(_NoRedirects)

    def pets(self, status=None, limit=100):
        """Iterates over all animals by ascending id, and reads pages as needed."""
        query = {"limit": limit} | ({"status": status} if status else {})
        while True:
            page, headers = self._send(f"/v1/pets?{urllib.parse.urlencode(query)}")
            yield from page
            after = re.search(r'<[^>]*[?&]after=(-?\d+)[^>]*>; rel="next"', headers.get("Link", ""))
            if not after:
                return
            query["after"] = int(after[1])

    def create(self, name, category_id, status="available"):
        """Adds an animal once, even if the request is repeated."""
        return self._send("/v1/pets", {"name": name, "categoryId": category_id, "status": status})[0]

    def graphql(self, query, variables=None):
        """Runs an operation; an ID is a string of digits."""
        body, _ = self._send("/graphql", {"query": query, "variables": variables or {}})
        return body["data"]

    def _send(self, path, body=None):
        headers = {"Authorization": f"Bearer {self._key}", "Accept": "application/json"}
        if body is not None:
            # The service executes a creation with this key once.
            headers |= {"Content-Type": "application/json", "Idempotency-Key": secrets.token_hex(16)}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, data, headers)
        end = time.monotonic() + self._seconds
        for attempt in range(self._retries + 1):
            try:
                return self._attempt(request, end - time.monotonic())
            except StoreError as error:
                pause = (error.retry_after or 0) + random.uniform(0, 0.2 * 2**attempt)
                if not _is_transient(error) or attempt == self._retries or time.monotonic() + pause >= end:
                    raise
                time.sleep(pause)

    def _attempt(self, request, remaining):
        try:
            try:
                response = self._opener.open(request, timeout=max(0.001, min(30.0, remaining)))
            except urllib.error.HTTPError as refusal:
                response = refusal
            with response:
                status, headers, text = response.status, response.headers, response.read()
        except (OSError, http.client.HTTPException) as failure:
            raise StoreError("NETWORK_ERROR", f"{type(failure).__name__} from {self._url}") from None
        try:
            answer = json.loads(text)
        except ValueError:
            answer = None
        if status > 299 or answer is None or (isinstance(answer, dict) and answer.get("errors")):
            raise _error_of(status, headers, answer)
        return answer, headers


def _is_transient(error):
    return error.status in (None, 429, 502, 503, 504) or error.code == "IDEMPOTENCY_KEY_IN_USE"


def _error_of(status, headers, body):
    try:
        first = body["errors"][0] if "errors" in body else body
        details = {"status": status} | first.get("extensions", first)
        code, message, status = details["code"], first["message"], details["status"]
    except (LookupError, TypeError, AttributeError):
        code, message, details = "UNEXPECTED_ANSWER", f"The answer has the status {status}.", {}
    return StoreError(code, message, status, _seconds(str(details.get("retryAfter", headers.get("Retry-After", ""))), headers))


def _seconds(retry_after, headers):
    """Seconds of a number, or of a date relative to the response's own; None for any other text."""
    if re.fullmatch("[0-9]+", retry_after):
        return float(retry_after)
    try:
        now = email.utils.parsedate_to_datetime(headers["Date"]) if headers["Date"] else datetime.now(timezone.utc)
        return max(0.0, (email.utils.parsedate_to_datetime(retry_after) - now).total_seconds())
    except (ValueError, TypeError):
        return None
