// libcurl as one module. Its setters and getters take any number of arguments, which Swift cannot
// call: there is one function for each type here. Nothing here makes a decision.
#ifndef PREFSFS_CCURL_SHIM_H
#define PREFSFS_CCURL_SHIM_H

#include <curl/curl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <sys/socket.h>

static inline CURLcode prefsfs_curl_set_number(CURL *handle, CURLoption option, long value) {
  return curl_easy_setopt(handle, option, value);
}

static inline CURLcode prefsfs_curl_set_text(CURL *handle, CURLoption option, const char *text) {
  return curl_easy_setopt(handle, option, text);
}

static inline CURLcode prefsfs_curl_set_pointer(CURL *handle, CURLoption option, void *pointer) {
  return curl_easy_setopt(handle, option, pointer);
}

static inline CURLcode prefsfs_curl_set_body(CURL *handle, const void *bytes, long count) {
  CURLcode code = curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE, count);
  return code ? code : curl_easy_setopt(handle, CURLOPT_COPYPOSTFIELDS, bytes);
}

static inline CURLcode prefsfs_curl_set_headers(CURL *handle, struct curl_slist *headers) {
  return curl_easy_setopt(handle, CURLOPT_HTTPHEADER, headers);
}

// Both callbacks have the same type.
static inline CURLcode prefsfs_curl_set_callback(
    CURL *handle, CURLoption option, curl_write_callback callback) {
  return curl_easy_setopt(handle, option, callback);
}

static inline int prefsfs_curl_limit_silence(
    void *milliseconds, curl_socket_t socket, curlsocktype purpose) {
  unsigned int limit = (unsigned int)(uintptr_t)milliseconds;
  (void)purpose;
  setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit, sizeof limit);
  return CURL_SOCKOPT_OK;
}

// Has each connection fail when sent bytes are unacknowledged for so long (TCP_USER_TIMEOUT of
// tcp(7)).
static inline CURLcode prefsfs_curl_set_user_timeout(CURL *handle, unsigned int milliseconds) {
  CURLcode code = curl_easy_setopt(handle, CURLOPT_SOCKOPTFUNCTION, prefsfs_curl_limit_silence);
  return code ? code
              : curl_easy_setopt(handle, CURLOPT_SOCKOPTDATA, (void *)(uintptr_t)milliseconds);
}

static inline CURLcode prefsfs_curl_get_number(CURL *handle, CURLINFO information, long *value) {
  return curl_easy_getinfo(handle, information, value);
}

#endif
