#include "web/client.hpp"

#include <curl/curl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>

#include "core/error.hpp"
#include "core/loaded_library.hpp"
#include "web/tree.hpp"

namespace weir::web {

namespace {

struct CurlLibrary {
    core::LoadedLibrary library{"libcurl", "libcurl.so.4", "libcurl4"};
    WEIR_LIBRARY_FUNCTION(curl_easy_cleanup);
    WEIR_LIBRARY_FUNCTION(curl_easy_getinfo);
    WEIR_LIBRARY_FUNCTION(curl_easy_init);
    WEIR_LIBRARY_FUNCTION(curl_easy_perform);
    WEIR_LIBRARY_FUNCTION(curl_easy_reset);
    WEIR_LIBRARY_FUNCTION(curl_easy_setopt);
    WEIR_LIBRARY_FUNCTION(curl_easy_strerror);
    WEIR_LIBRARY_FUNCTION(curl_global_init);
    WEIR_LIBRARY_FUNCTION(curl_slist_append);
    WEIR_LIBRARY_FUNCTION(curl_slist_free_all);
};

const CurlLibrary& curl() {
    static const CurlLibrary functions;
    return functions;
}

constexpr std::size_t answer_bytes_max = 64U << 20U;
constexpr std::string_view client_root = "/api/0.1/weir";

std::size_t take_answer(char* bytes, std::size_t, std::size_t size, void* into) {
    auto& text = *static_cast<std::string*>(into);
    if (text.size() + size > answer_bytes_max) return 0;
    text.append(bytes, size);
    return size;
}

std::string socket_folder() {
    if (geteuid() == 0) return "/run/weir";
    const char* runtime = std::getenv("XDG_RUNTIME_DIR");
    if (runtime != nullptr && *runtime != '\0') return std::string(runtime) + "/weir";
    return fmt::format("/tmp/weir-{}", geteuid());
}

}  // namespace

struct Client::Curl {
    explicit Curl(Options from)
        : options(std::move(from)), place(options.socket.empty() ? options.url : "unix:" + options.socket) {
        static std::once_flag once;
        std::call_once(once, [] { curl().curl_global_init(CURL_GLOBAL_DEFAULT); });
        handle = curl().curl_easy_init();
        if (handle == nullptr) throw core::RunError("libcurl does not start");
    }
    ~Curl() { curl().curl_easy_cleanup(handle); }
    Curl(const Curl&) = delete;
    Curl& operator=(const Curl&) = delete;

    Answer ask(std::string_view path, const std::string* body);

    Options options;
    std::string place;
    CURL* handle = nullptr;
};

Client::Answer Client::Curl::ask(std::string_view path, const std::string* body) {
    const std::string below = path.starts_with('/') ? std::string(path)
                              : path.empty()        ? std::string(client_root)
                                                    : fmt::format("{}/{}", client_root, path);
    const std::string url = (options.socket.empty() ? options.url : "http://localhost") + below;
    Answer answer;
    curl().curl_easy_reset(handle);  // keeps the connection
    curl().curl_easy_setopt(handle, CURLOPT_URL, url.c_str());
    curl().curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
    curl().curl_easy_setopt(handle, CURLOPT_NOPROXY, options.socket.empty() ? nullptr : "*");
    curl().curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
    curl().curl_easy_setopt(handle, CURLOPT_TIMEOUT_MS, static_cast<long>(options.patience.count()));
    curl().curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, take_answer);
    curl().curl_easy_setopt(handle, CURLOPT_WRITEDATA, &answer.text);
    if (!options.socket.empty()) curl().curl_easy_setopt(handle, CURLOPT_UNIX_SOCKET_PATH, options.socket.c_str());
    curl_slist* headers = curl().curl_slist_append(nullptr, "Accept: application/json");
    if (body != nullptr) {
        curl().curl_easy_setopt(handle, CURLOPT_CUSTOMREQUEST, "PUT");
        curl().curl_easy_setopt(handle, CURLOPT_POSTFIELDS, body->c_str());
        curl().curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE, static_cast<long>(body->size()));
        headers = curl().curl_slist_append(headers, "Content-Type: application/json");
        if (!options.token.empty())
            headers = curl().curl_slist_append(headers, ("Authorization: Bearer " + options.token).c_str());
    }
    const std::unique_ptr<curl_slist, void (*)(curl_slist*)> kept(headers, curl().curl_slist_free_all);
    curl().curl_easy_setopt(handle, CURLOPT_HTTPHEADER, headers);
    const CURLcode result = curl().curl_easy_perform(handle);
    if (result != CURLE_OK)
        throw core::RunError(fmt::format("{} does not answer: {}", place, curl().curl_easy_strerror(result)));
    long status = 0;
    curl().curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
    answer.status = static_cast<int>(status);
    try {
        answer.body = parse_bounded(answer.text);
    } catch (const core::UsageError&) {  // the metrics, or whatever somebody else's server says
    }
    return answer;
}

std::string Client::Answer::error() const {
    if (body.is_object() && body.contains("error") && body["error"].is_string()) return body["error"];
    return fmt::format("HTTP status {}", status);
}

Client::Client(Options options) : curl_(std::make_unique<Curl>(std::move(options))) {}
Client::~Client() = default;
Client::Client(Client&&) noexcept = default;

Client::Answer Client::get(std::string_view path) {
    return curl_->ask(path, nullptr);
}

Client::Answer Client::put(std::string_view path, const nlohmann::json& value) {
    const std::string body = value.dump();
    return curl_->ask(path, &body);
}

const std::string& Client::place() const {
    return curl_->place;
}

std::string default_socket(std::string_view name) {
    return fmt::format("{}/{}.sock", socket_folder(), name);
}

std::vector<std::string> sockets_there() {
    std::vector<std::string> out;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(socket_folder(), error))
        if (entry.path().extension() == ".sock" && entry.is_socket(error)) out.push_back(entry.path());
    std::ranges::sort(out);
    return out;
}

std::string token_in(const std::string& file) {
    struct stat status {};
    std::ifstream in(file);
    if (!in || stat(file.c_str(), &status) != 0) throw core::UsageError(fmt::format("{} cannot be read", file));
    if ((status.st_mode & S_IROTH) != 0)
        throw core::UsageError(fmt::format("{} may be read by everybody; chmod o-r mends it", file));
    std::string token;
    std::getline(in >> std::ws, token);
    token.erase(token.find_last_not_of(" \t\r") + 1);
    if (token.empty()) throw core::UsageError(fmt::format("{} is empty", file));
    return token;
}

}  // namespace weir::web
