#include "web/openapi.hpp"

#include <nlohmann/json.hpp>
#include <string_view>

namespace weir::web {

namespace {

constexpr std::string_view openapi_text = R"json({
  "openapi": "3.0.3",
  "info": {
    "title": "weir",
    "version": "0.1",
    "description": "What a running weir shows, and lets be changed: a tree of parameters in odin-control's convention. What is in the tree is described in docs/reference/WATCH_API.md. With `Accept: application/json;metadata=true` each single value is answered as {value, type, writeable}.",
    "license": {"name": "BSD-3-Clause"}
  },
  "servers": [{"url": "/"}],
  "security": [{}],
  "paths": {
    "/api": {
      "get": {
        "operationId": "apiVersion", "summary": "Which version of the API there is",
        "responses": {"200": {"description": "It", "content": {"application/json": {"schema": {"type": "object", "required": ["api"], "properties": {"api": {"type": "number"}}}}}}}
      }
    },
    "/api/0.1/adapters": {
      "get": {
        "operationId": "adapters", "summary": "Which trees there are, for odin-control's clients",
        "responses": {"200": {"description": "Their names", "content": {"application/json": {"schema": {"type": "object", "required": ["adapters"], "properties": {"adapters": {"type": "array", "items": {"type": "string"}}}}}}}}
      }
    },
    "/api/0.1/weir": {
      "get": {
        "operationId": "getDocument", "summary": "All of it",
        "responses": {"200": {"$ref": "#/components/responses/Found"}, "403": {"$ref": "#/components/responses/Error"}}
      },
      "put": {
        "operationId": "putDocument", "summary": "Changes each value that the body names, then executes the command in it, if any",
        "security": [{"token": []}, {"weirToken": []}, {}],
        "requestBody": {"$ref": "#/components/requestBodies/Changes"}
      }
    },
    "/api/0.1/weir/{path}": {
      "parameters": [{"name": "path", "in": "path", "required": true, "description": "Keys, and indexes of lists, with slashes between them", "schema": {"type": "string"}, "example": "status/state"}],
      "get": {
        "operationId": "get", "summary": "A part of the document: a table as it is, everything else as {\"value\": v}",
        "responses": {"200": {"$ref": "#/components/responses/Found"}, "400": {"$ref": "#/components/responses/Error"}, "403": {"$ref": "#/components/responses/Error"}, "404": {"$ref": "#/components/responses/Error"}}
      },
      "put": {
        "operationId": "put", "summary": "Changes what is at the path, or below it",
        "security": [{"token": []}, {"weirToken": []}, {}],
        "requestBody": {"$ref": "#/components/requestBodies/Changes"}
      }
    },
    "/api/0.1/weir/command/allowed": {
      "get": {
        "operationId": "commands", "summary": "The names of the commands",
        "responses": {"200": {"description": "Under their own key, as fastcs-odin wants it", "content": {"application/json": {"schema": {"type": "object", "required": ["allowed"], "properties": {"allowed": {"type": "array", "items": {"$ref": "#/components/schemas/Command"}}}}}}}}
      }
    },
    "/api/0.1/weir/command/execute": {
      "put": {
        "operationId": "execute", "summary": "Executes a command; command/last says when it is done, and what became of it",
        "security": [{"token": []}, {"weirToken": []}, {}],
        "requestBody": {"required": true, "content": {"application/json": {"schema": {"oneOf": [{"$ref": "#/components/schemas/Command"}, {"type": "object", "required": ["value"], "properties": {"value": {"$ref": "#/components/schemas/Command"}}}]}, "example": "start"}}}
      }
    },
    "/api/0.1/weir/openapi.json": {
      "get": {"operationId": "openapi", "summary": "This document", "responses": {"200": {"description": "It", "content": {"application/json": {"schema": {"type": "object"}}}}}}
    },
    "/api/0.1/weir/config_schema.json": {
      "get": {"operationId": "configSchema", "summary": "The JSON schema of a configuration file, read as JSON", "responses": {"200": {"description": "It", "content": {"application/json": {"schema": {"type": "object"}}}}}}
    },
    "/events": {
      "get": {
        "operationId": "events", "summary": "Updates of the document as server-sent events, without its history and its list of runs unless these have changed",
        "responses": {"200": {"description": "A stream without an end, of events named \"state\"", "content": {"text/event-stream": {"schema": {"type": "string"}}}}}
      }
    },
    "/metrics": {
      "get": {
        "operationId": "metrics", "summary": "The numbers, for Prometheus",
        "responses": {"200": {"description": "Its text format", "content": {"text/plain": {"schema": {"type": "string"}}}}}
      }
    },
    "/picture": {
      "get": {
        "operationId": "picture", "summary": "The latest event that is an image: its pixels, row by row, little-endian",
        "responses": {
          "200": {
            "description": "The pixels",
            "headers": {
              "X-Weir-Type": {"description": "u8, u16, i16, u32, i32 or f32", "schema": {"type": "string"}},
              "X-Weir-Width": {"schema": {"type": "integer"}},
              "X-Weir-Height": {"schema": {"type": "integer"}},
              "X-Weir-Event": {"schema": {"type": "integer"}},
              "X-Weir-Generation": {"schema": {"type": "integer"}}
            },
            "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
          },
          "404": {"$ref": "#/components/responses/Error"}
        }
      }
    }
  },
  "components": {
    "securitySchemes": {
      "token": {"type": "http", "scheme": "bearer", "description": "What is in the file token_file of [serve]. Over a UNIX socket none is needed."},
      "weirToken": {"type": "apiKey", "in": "header", "name": "X-Weir-Token"}
    },
    "requestBodies": {
      "Changes": {"required": true, "content": {"application/json": {"schema": {}, "example": {"config": {"duration_s": 10}, "command": {"execute": "start"}}}}}
    },
    "responses": {
      "Found": {"description": "A table, or {\"value\": v}", "content": {"application/json": {"schema": {"type": "object"}}}},
      "Done": {"description": "Changed; the value that was given, and what there is to say", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Changed"}}}},
      "UnderWay": {"description": "Accepted; command/last says when it is done", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Changed"}}}},
      "Error": {"description": "Why not", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}}
    },
    "schemas": {
      "Command": {"type": "string", "enum": ["start", "stop", "new_run", "snapshot", "flight_record", "abort"]},
      "Changed": {"type": "object", "required": ["value"], "properties": {"value": {}, "message": {"type": "string"}}},
      "Error": {"type": "object", "required": ["error"], "properties": {"error": {"type": "string"}}}
    }
  }
})json";

/// Every PUT may end in the same ways, which OpenAPI cannot refer to as a whole.
nlohmann::json put_responses() {
    nlohmann::json out = {{"200", {{"$ref", "#/components/responses/Done"}}},
                          {"202", {{"$ref", "#/components/responses/UnderWay"}}}};
    for (const char* status : {"400", "401", "403", "404", "409", "413", "415", "429"})
        out[status] = {{"$ref", "#/components/responses/Error"}};
    return out;
}

nlohmann::json whole_document() {
    nlohmann::json out = nlohmann::json::parse(openapi_text);
    for (auto& [path, item] : out.at("paths").items())
        if (item.contains("put")) item["put"]["responses"] = put_responses();
    return out;
}

}  // namespace

const nlohmann::json& openapi_document() {
    static const nlohmann::json document = whole_document();
    return document;
}

}  // namespace weir::web
