"""A server that answers as weir does, with the files of the page and the documents that a test gives it."""
import http.server
import json
import pathlib
import re
import struct
import threading
import time

import documents

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "lib" / "operate" / "web" / "page"
TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml", ".md": "text/markdown; charset=utf-8"}
POLICY = ("default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; "
          "base-uri 'none'; form-action 'none'; frame-ancestors 'none'")


def picture(width=512, height=256, kind="f32"):
    """Rings around a spot, a row that is hot, and one pixel that is not a number."""
    values = []
    for y in range(height):
        for x in range(width):
            r = ((x - width / 2) ** 2 + (y - height / 2) ** 2) ** 0.5
            values.append(20 + 900 / (1 + (r / 12) ** 2) + (40 if 60 < r < 66 else 0) + (x * 7 + y * 13) % 11)
    values[0] = 5000
    letter = {"f32": "f", "u16": "H", "i32": "i", "u8": "B", "f64": "d"}[kind]
    if letter in "fd":
        values[1] = float("nan")
    else:
        values = [min(255, int(value)) if letter == "B" else int(value) for value in values]
    return struct.pack(f"<{len(values)}{letter}", *values)


def served_files():
    """By path: the page's own files, and the guides that its meson.build names."""
    files = {"/" if file.name == "index.html" else f"/assets/{file.name}": file for file in PAGE.iterdir() if file.suffix in TYPES}
    guides = re.search(r"foreach guide : \[(.*?)\]", (PAGE / "meson.build").read_text())[1]
    for name in re.findall(r"'(\w+)'", guides):
        files[f"/assets/{name}.md"] = ROOT / "docs" / "guides" / f"{name}.md"
    return files


class MockWeir:
    """`show` what is to be seen; `commands` is what was asked for, with the token; `down` refuses everything."""
    token = "open sesame"

    def __init__(self, document):
        self.changed = threading.Condition()
        self.document = document
        self.down = self.silent = False
        self.pixels, self.pixel_kind = picture(), "f32"
        self.commands, self.requests = [], []
        self.ended = False
        self.cluster = None  # what /cluster says; None: there is none
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                server.get(self)

            def do_PUT(self):
                server.put(self)

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass  # a browser that goes away

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ended = True
        with self.changed:
            self.changed.notify_all()
        self.server.shutdown()
        self.server.server_close()

    def show(self, document):
        with self.changed:
            document["generation"] = self.document.get("generation", 0) + 1
            self.document = document
            self.changed.notify_all()

    def go(self, down):
        """Away, with every connection, or back."""
        with self.changed:
            self.down = down
            self.changed.notify_all()

    @staticmethod
    def answer(handler, content, kind="application/json", status=200, **headers):
        handler.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": len(content), "Content-Security-Policy": POLICY, "X-Content-Type-Options": "nosniff",
                            "Cache-Control": "no-store", **{key.replace("_", "-"): value for key, value in headers.items()}}.items():
            handler.send_header(name, str(value))
        handler.end_headers()
        handler.wfile.write(content)

    def get(self, handler):
        self.requests.append(handler.path)
        if self.down:
            handler.close_connection = True
            return
        files = served_files()
        if handler.path in files:
            self.answer(handler, files[handler.path].read_bytes(), TYPES[files[handler.path].suffix])
        elif handler.path == "/api/0.1/weir":
            self.answer(handler, json.dumps(self.document).encode())
        elif handler.path == "/picture":
            shown = self.document["picture"]
            self.answer(handler, self.pixels, "application/octet-stream", X_Weir_Type=self.pixel_kind, X_Weir_Width=shown["width"], X_Weir_Height=shown["height"],
                        X_Weir_Event=shown["event"], X_Weir_Generation=shown["generation"])
        elif handler.path == "/cluster" and self.cluster is not None:
            self.answer(handler, json.dumps(self.cluster).encode())
        elif handler.path == "/events":
            self.stream(handler)
        else:
            self.answer(handler, b'{"error": "there is no such thing"}', status=404)

    def stream(self, handler):
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.end_headers()
        handler.close_connection = True
        sent, last = None, 0.0
        while not (self.down or self.ended):
            with self.changed:
                document = self.document
                if document.get("generation") == sent or self.silent:
                    self.changed.wait(0.2)
                    last += 0.2
                    # As weir, it says that it is still there, also when nothing happens.
                    if self.silent or self.down or last < 1 and self.document.get("generation") == sent:
                        continue
                    document = self.document
                last = 0.0
                sent = document.get("generation")
                update = {key: value for key, value in document.items() if key not in ("history", "runs")}
            handler.wfile.write(f"event: state\ndata: {json.dumps(update)}\n\n".encode())
            handler.wfile.flush()

    def put(self, handler):
        body = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        if handler.headers.get("X-Weir-Token") != self.token:
            self.answer(handler, b'{"error": "the token is another"}', status=401)
            return
        self.commands.append((handler.path, handler.headers.get("Content-Type"), json.loads(body)))
        self.answer(handler, b"{}", status=202)


def ticking(server, name, every_s=0.5):
    """Shows a situation whose clock goes on, for somebody who looks at it."""
    seconds = 0
    while not server.ended:
        document = documents.made(name)
        document["time"] = f"2026-11-25T16:{int(seconds // 60):02}:{seconds % 60:06.3f}Z"
        document["picture"]["generation"] += int(seconds)
        server.show(document)
        seconds += every_s
        time.sleep(every_s)


if __name__ == "__main__":
    import sys
    with MockWeir(documents.made(sys.argv[1] if len(sys.argv) > 1 else "running")) as mock:
        print(mock.url, "situations:", *documents.SITUATIONS, flush=True)
        ticking(mock, sys.argv[1] if len(sys.argv) > 1 else "running")
