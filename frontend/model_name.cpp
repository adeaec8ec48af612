#include "frontend/model_name.h"

#include "frontend/check_keys.h"

namespace tfc::frontend {
namespace {

// Words in one string each, with a blank after every word.
constexpr std::string_view kKeywords =  // of C and C++
    "auto break case char const continue default do double else enum extern float for goto if inline int "
    "long register restrict return short signed sizeof static struct switch typedef union unsigned void "
    "volatile while alignas alignof and and_eq asm bitand bitor bool catch char16_t char32_t char8_t "
    "class co_await co_return co_yield compl concept consteval constexpr constinit const_cast decltype "
    "delete dynamic_cast explicit export false friend mutable namespace new noexcept not not_eq nullptr "
    "operator or or_eq private protected public reinterpret_cast requires static_assert static_cast "
    "template this thread_local throw true try typeid typename typeof typeof_unqual using virtual wchar_t "
    "xor xor_eq linux unix ";

constexpr std::string_view kPythonKeywords =
    "False None True and as assert async await break class continue def del elif else except finally for "
    "from global if import in is lambda nonlocal not or pass raise return try while with yield _ case "
    "match ";

constexpr std::string_view kHeaders =  // of C, POSIX and C++
    "assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign "
    "stdarg stdatomic stdbit stdbool stdckdint stddef stdint stdio stdlib stdnoreturn string tgmath "
    "threads time uchar wchar wctype aio cpio dirent dlfcn fcntl fmtmsg fnmatch ftw glob grp iconv "
    "langinfo libgen monetary mqueue ndbm net netdb nl_types poll pthread pwd regex sched search "
    "semaphore spawn strings stropts sys syslog tar termios ulimit unistd utime utmpx wordexp malloc "
    "memory features algorithm any array atomic barrier bit bitset charconv chrono codecvt compare "
    "concepts coroutine deque exception execution expected filesystem format forward_list fstream "
    "functional future generator initializer_list iomanip ios iosfwd iostream istream iterator latch list "
    "map mdspan memory_resource mutex numbers numeric optional ostream print queue random ranges ratio "
    "scoped_allocator set shared_mutex source_location span spanstream sstream stack stacktrace stdexcept "
    "stdfloat stop_token streambuf string_view strstream syncstream system_error thread tuple type_traits "
    "typeindex typeinfo unordered_map unordered_set utility valarray variant vector version cassert "
    "cctype cerrno cfenv cfloat cinttypes climits clocale cmath csetjmp csignal cstdarg cstddef cstdint "
    "cstdio cstdlib cstring ctime cuchar cwchar cwctype ";

constexpr std::string_view
    kPythonModules =  // of the standard library, and the one that generated modules import
    "abc aifc antigravity argparse array ast asynchat asyncio asyncore atexit audioop base64 bdb binascii "
    "bisect builtins bz2 cProfile calendar cgi cgitb chunk cmath cmd code codecs codeop collections "
    "colorsys compileall concurrent configparser contextlib contextvars copy copyreg crypt csv ctypes "
    "curses dataclasses datetime dbm decimal difflib dis distutils doctest email encodings ensurepip enum "
    "errno faulthandler fcntl filecmp fileinput fnmatch fractions ftplib functools gc genericpath getopt "
    "getpass gettext glob graphlib grp gzip hashlib heapq hmac html http idlelib imaplib imghdr imp "
    "importlib inspect io ipaddress itertools json keyword lib2to3 linecache locale logging lzma mailbox "
    "mailcap marshal math mimetypes mmap modulefinder msilib msvcrt multiprocessing netrc nis nntplib nt "
    "ntpath nturl2path numbers opcode operator optparse os ossaudiodev pathlib pdb pickle pickletools "
    "pipes pkgutil platform plistlib poplib posix posixpath pprint profile pstats pty pwd py_compile "
    "pyclbr pydoc pydoc_data pyexpat queue quopri random re readline reprlib resource rlcompleter runpy "
    "sched secrets select selectors shelve shlex shutil signal site smtpd smtplib sndhdr socket "
    "socketserver spwd sqlite3 sre_compile sre_constants sre_parse ssl stat statistics string stringprep "
    "struct subprocess sunau symtable sys sysconfig syslog tabnanny tarfile telnetlib tempfile termios "
    "textwrap this threading time timeit tkinter token tokenize tomllib trace traceback tracemalloc tty "
    "turtle turtledemo types typing unicodedata unittest urllib uu uuid venv warnings wave weakref "
    "webbrowser winreg winsound wsgiref xdrlib xml xmlrpc zipapp zipfile zipimport zlib zoneinfo numpy ";

constexpr std::string_view kLibraries =  // that linkers and loaders know, and names that generated code uses
    "m c dl rt pthread util z stdc gcc gcc_s atomic crypt resolv nsl anl main tc std ";

constexpr size_t kLongest = 64;

bool lists(std::string_view words, std::string_view name) {
  for (size_t at = words.find(name); at != std::string_view::npos; at = words.find(name, at + 1))
    if ((at == 0 || words[at - 1] == ' ') && words[at + name.size()] == ' ') return true;
  return false;
}

}  // namespace

std::string refusal_of_name(std::string_view name) {
  if (!is_identifier(name)) return "it must be letters, digits and '_', and not begin with a digit";
  if (name.size() > kLongest) return "it is longer than 64 characters";
  if (name.starts_with("__") || (name[0] == '_' && name.size() > 1 && name[1] >= 'A' && name[1] <= 'Z'))
    return "such names are reserved in C";
  if (lists(kKeywords, name)) return "it is a keyword of C or C++";
  if (lists(kPythonKeywords, name)) return "it is a keyword of Python";
  if (lists(kHeaders, name)) return "it is a standard header";
  if (lists(kPythonModules, name)) return "it is a module of Python";
  if (lists(kLibraries, name)) return "it is a system library or a name that generated code uses";
  return {};
}

std::string allowed_name(std::string_view name) {
  std::string allowed;
  for (const char c : name.substr(0, kLongest - 6)) {
    const bool good = is_identifier(std::string("a") + c);
    if (good || (!allowed.empty() && allowed.back() != '_')) allowed += good ? c : '_';
  }
  while (!allowed.empty() && allowed.back() == '_') allowed.pop_back();
  allowed.erase(0, allowed.find_first_not_of('_'));
  if (allowed.empty() || !refusal_of_name(allowed).empty()) allowed = "model_" + allowed;
  if (allowed.back() == '_') allowed.pop_back();
  return allowed;
}

}  // namespace tfc::frontend
