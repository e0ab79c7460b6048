/* DT_ASAN: 1 in a build with AddressSanitizer, else 0. */
#ifndef DT_BASE_SANITIZER_H
#define DT_BASE_SANITIZER_H

#if defined(__SANITIZE_ADDRESS__)
#define DT_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define DT_ASAN 1
#endif
#endif
#ifndef DT_ASAN
#define DT_ASAN 0
#endif

#endif
