/* The modules that the checks know, and findings as JSON for Python. */
#include <algorithm>
#include <atomic>
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <set>
#include "check_shadow.h"

namespace sim {

bool check_has_warnings;
CheckedModule *check_library;

enum { kKeptFindings = 256 };
enum { kUnset = -1 };
static std::atomic<int> chosen{kCheckOff};    /* last, in any thread */
static thread_local int chosen_here = kUnset; /* in this thread */
static std::vector<std::unique_ptr<CheckedModule>> modules;
static std::map<long, std::string> findings;
static std::vector<long> warnings;
static std::set<std::string> warned;
static long next_number = 1;

/* --- settings and modules --- */

bool check_set(const char *text)
{
    static const char *const names[] = {"off", "warn", "error"};
    Entry in(Entry::kNothing);
    for (int i = 0; i < 3; i++)
        if (!strcmp(text, names[i])) {
            chosen = chosen_here = i;
            warned.clear();
            return true;
        }
    return false;
}

CheckMode check_mode()
{
    return (CheckMode)(chosen_here == kUnset ? chosen.load() : chosen_here);
}

CheckedModule *check_module_of(const void *function)
{
    Dl_info info;
    if (!dladdr(function, &info))
        return nullptr;
    for (auto &module : modules)
        if (module->base == info.dli_fbase)
            return module.get();
    return nullptr;
}

const char *check_module_add(const char *text)
{
    std::unique_ptr<CheckedModule> module(new CheckedModule);
    size_t bytes = 0;
    int used = 0;
    if (sscanf(text, "%p %zu%n", &module->handle, &bytes, &used) != 2)
        return "a module is to be HANDLE BYTES and variables";
    module->base = (char *)((struct link_map *)module->handle)->l_addr;
    module->end = module->base + bytes;
    char name[512];
    size_t low, high;
    int holder, more;
    for (text += used;
         sscanf(text, " %zu %zu %d %511s%n", &low, &high, &holder, name, &more) == 4;
         text += more)
        module->variables.push_back(
            {module->base + low, module->base + high, (Holder)holder, name});
    if (!module->variables.empty())
        module->cells.resize(
            (size_t)(module->variables.back().high - module->variables.front().low) /
                4 +
            2);
    if ((char *)check_module_add > module->base &&
        (char *)check_module_add < module->end)
        check_library = module.get();
    modules.push_back(std::move(module));
    return nullptr;
}

/* --- JSON --- */

static std::string coordinates(dim3 extent, size_t linear)
{
    return format("[%zu, %zu, %zu]", linear % extent.x, linear / extent.x % extent.y,
                  linear / extent.x / extent.y);
}

static std::string place(const char *name, const Place &place)
{
    if (place.line)
        return format(", \"%sline\": %d", name, place.line);
    if (place.at)
        return format(", \"%sat\": %zu", name, (size_t)place.at);
    return "";
}

/* The tensor that an address is in or near to. */
static std::string near_tensor(const char *p)
{
    const Operand *nearest = nullptr;
    size_t least = 0;
    for (const Operand &o : shadow.operands) {
        const size_t far = p < o.low     ? (size_t)(o.low - p)
                           : p >= o.high ? (size_t)(p - o.high) + 1
                                         : 0;
        if (!nearest || far < least) {
            nearest = &o;
            least = far;
        }
    }
    if (!nearest)
        return "\"where\": \"device\"";
    const char *data = seen_from(nearest->data) + nearest->moved;
    return format("\"where\": \"tensor\", \"argument\": %d, \"offset\": %lld, "
                  "\"low\": %lld, \"high\": %lld, \"item\": %zu, \"field\": %d",
                  nearest->argument, (long long)(p - data),
                  (long long)(nearest->low - data), (long long)(nearest->high - data),
                  nearest->item, nearest->field);
}

static std::string near_variable(const CheckedModule &module, const char *p)
{
    static const char *const holders[] = {"variable", "shared", "constant", "host"};
    for (auto at = module.variables.rbegin(); at != module.variables.rend(); ++at)
        if (p >= at->low)
            return format("\"where\": \"%s\", \"name\": \"%s\", \"offset\": %lld, "
                          "\"high\": %zu",
                          holders[at->holder], at->name.c_str(),
                          (long long)(p - at->low), (size_t)(at->high - at->low));
    return "\"where\": \"device\"";
}

static bool is_of_tensors(const char *p)
{
    for (const Operand &o : shadow.operands)
        if ((size_t)(p - o.low) + kApart < (size_t)(o.high - o.low) + 2 * kApart)
            return true;
    return (size_t)(p - shadow.seen) < shadow.span;
}

static bool is_of_block(const char *p)
{
    return checked.shared && p >= checked.shared &&
           p < checked.shared + checked.shared_bytes + (64 << 10);
}

static bool is_of_module(const char *p)
{
    const CheckedModule &module = *checked.launch->module;
    const size_t near = 1 << 20;
    return (size_t)(p - module.base) + near <
           (size_t)(module.end - module.base) + 2 * near;
}

bool check_is_elsewhere(const void *address)
{
    const char *p = (const char *)address;
    for (const CheckedVariable &each : checked.launch->module->variables)
        if (p >= each.low && p < each.high)
            return each.holder >= kHeldConstant; /* which kernels cannot use so */
    return !is_of_tensors(p) && !is_of_block(p) && !is_of_module(p);
}

std::string describe_place(const void *address, size_t)
{
    const char *p = (const char *)address;
    if ((uintptr_t)p < 65536 || (uintptr_t)p > UINTPTR_MAX - 65536)
        return format("\"where\": \"null\", \"offset\": %lld", (long long)(intptr_t)p);
    if (is_of_tensors(p))
        return near_tensor(p);
    if (is_of_block(p))
        return format("\"where\": \"dynamic\", \"offset\": %lld, \"high\": %zu",
                      (long long)(p - checked.shared), checked.shared_bytes);
    if (is_of_module(p))
        return near_variable(*checked.launch->module, p);
    char text[160];
    describe_address(text, sizeof text, p);
    return format("\"where\": \"elsewhere\", \"words\": \"%s\"", text);
}

static const char *const kinds[] = {"race",         "out_of_bounds", "misaligned",
                                    "null_pointer", "wrong_memory",  "uninitialized",
                                    "barrier",      "warp",          "wait"};
static const char *const spaces[] = {"global", "shared", "local", "unknown"};

static std::string quoted(const char *text)
{
    std::string made = "\"";
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            made += '\\';
        made += *text;
    }
    return made + "\"";
}

static std::string json(const Finding &f)
{
    const uint3 at = running_indices().block;
    const size_t running =
        at.x + (size_t)checked.grid.x * (at.y + (size_t)checked.grid.y * at.z);
    const size_t block = f.block < 0 ? running : (size_t)f.block;
    std::string text =
        format("{\"kind\": \"%s\", \"space\": \"%s\", \"kernel\": %s, \"module\": %zu, "
               "\"write\": %d, \"other_write\": %d, \"same_warp\": %d, \"bytes\": %u",
               kinds[f.kind], spaces[f.space], quoted(checked.launch->name).c_str(),
               (size_t)checked.launch->module->handle, f.write, f.other_write,
               f.same_warp, f.bytes);
    text += ", \"block\": " + coordinates(checked.grid, block) +
            ", \"thread\": " + coordinates(checked.block, f.thread);
    if (f.other_block >= 0)
        text +=
            ", \"other_block\": " + coordinates(checked.grid, (size_t)f.other_block);
    if (f.other_thread >= 0)
        text +=
            ", \"other_thread\": " + coordinates(checked.block, (size_t)f.other_thread);
    text += place("", f.place) + place("other_", f.other);
    if (f.kind == kRace && f.address)
        text += ", " + describe_place(f.address, f.bytes);
    return text + (f.more.empty() ? "" : ", " + f.more) + "}";
}

/* --- reports --- */

static long keep(const Finding &finding)
{
    findings[next_number] = json(finding);
    if (findings.size() > kKeptFindings)
        findings.erase(findings.begin());
    return next_number++;
}

/* Whether the launch's kernel has no such warning yet. */
static bool is_new(const Finding &f)
{
    return warned
        .insert(format("%s %d %zu %d %zu %d", checked.launch->name, f.kind,
                       (size_t)f.place.at, f.place.line, (size_t)f.other.at,
                       f.other.line))
        .second;
}

static bool warn(const Finding &finding)
{
    if (checked.launch->mode != kCheckWarn)
        return false;
    if (is_new(finding)) {
        warnings.push_back(keep(finding));
        check_has_warnings = true;
    }
    return true;
}

static std::string words(const Finding &finding)
{
    const uint3 at = running_indices().block;
    return format("kernel %s, block (%u, %u, %u): %s [finding %ld]",
                  checked.launch->name, at.x, at.y, at.z, kinds[finding.kind],
                  keep(finding));
}

/* The read without a value that has led to the finding, or the finding. */
static const Finding &cause(const Finding &f)
{
    for (Finding &deferred : shadow.deferred) {
        if (deferred.kind != kUninitialized)
            continue;
        if (f.kind == kRace && deferred.place.at == f.other.at)
            deferred = {}; /* the order is what is wrong */
        else if (f.kind >= kOutOfBounds && f.kind <= kWrongMemory &&
                 f.thread == deferred.thread && f.block == deferred.block)
            return deferred;
    }
    return f;
}

void report(const Finding &finding, bool last)
{
    const Finding &found = cause(finding);
    const bool warned_of = warn(found);
    if (warned_of && !last)
        return;
    /* The grid ends without a fault if there are no words. */
    const std::string text = warned_of ? "" : words(found);
    if (in_kernel())
        abandon(cudaErrorLaunchFailure, text.c_str());
    stop_grid(text.c_str());
}

bool check_stuck(const Stuck &stuck, char *text, size_t size)
{
    Finding found;
    found.kind = stuck.warp ? kWarp : kBarrier;
    found.thread = stuck.thread;
    found.other_thread = (long)stuck.other;
    found.place.line = shadow.lines[stuck.thread];
    if (stuck.other_waits)
        found.other.line = shadow.lines[stuck.other];
    found.more = format("\"where\": \"stuck\", \"barrier\": %u, \"lanes\": %u, "
                        "\"finished\": %u, \"mask\": %u",
                        stuck.barrier, stuck.lanes, stuck.finished, stuck.mask);
    *text = 0;
    if (warn(found))
        return false;
    snprintf(text, size, "%s", words(found).c_str());
    return true;
}

void check_excluded(unsigned mask)
{
    Finding found;
    found.kind = kWarp;
    found.thread = check_thread;
    found.place.line = shadow.lines[check_thread];
    found.more = format("\"where\": \"excluded\", \"mask\": %u", mask);
    report(found, true);
}

std::string check_finding(long number)
{
    Entry in(Entry::kNothing);
    auto found = findings.find(number);
    return found == findings.end() ? "" : found->second;
}

long check_warning()
{
    Entry in(Entry::kNothing);
    if (warnings.empty())
        return -1;
    const long first = warnings.front();
    warnings.erase(warnings.begin());
    check_has_warnings = !warnings.empty();
    return first;
}

} /* namespace sim */
