// Tested by image_test.cc and limits_test.cc.
#include "media/vips_session.h"

#include <algorithm>

#include "base/check.h"
#include "media/vips_handle.h"

namespace plateau::media {
namespace {

constexpr size_t kMaxMessage = 300;

std::mutex& session_mutex() {
  static std::mutex mutex;
  return mutex;
}

// libpng's reasons reach us through the log only, not through the error buffer.
thread_local std::string last_log;

// Replaces GLib's default for the domain, which prints to stderr.
void on_log(const gchar*, GLogLevelFlags, const gchar* text, gpointer) {
  last_log.assign(text == nullptr ? "" : text);
}

// libvips keeps four times its tile height of full rows behind every sequential decoder, 512 rows
// by default: the largest part of our memory for a wide picture. The height can only be set as a
// command line would, by parsing an option; 16 is what the decoders work in.
bool set_tile_height() {
  GOptionContext* context = g_option_context_new(nullptr);
  GOptionGroup* group = g_option_group_new("vips", "", "", nullptr, nullptr);
  vips_add_option_entries(group);
  g_option_context_set_main_group(context, group);  // takes the group
  const char* const arguments[] = {"plateau", "--vips-tile-height=16", nullptr};
  gchar** parsed = g_strdupv(const_cast<gchar**>(arguments));
  const bool ok = g_option_context_parse_strv(context, &parsed, nullptr) != 0;
  g_strfreev(parsed);
  g_option_context_free(context);
  return ok;
}

bool initialise() {
  const auto all_levels = static_cast<GLogLevelFlags>(
      int{G_LOG_LEVEL_MASK} | int{G_LOG_FLAG_FATAL} | int{G_LOG_FLAG_RECURSION});
  g_log_set_handler("VIPS", all_levels, on_log, nullptr);
  if (vips_init("plateau") != 0 || !set_tile_height()) return false;
  // Loaders that upstream does not fuzz (ImageMagick, PDF, SVG, ...) are never wanted here.
  vips_block_untrusted_set(TRUE);
  // Rows are pulled in the caller's thread; worker threads would each hold buffers of their own.
  vips_concurrency_set(1);
  vips_cache_set_max(0);
  return true;
}

std::string one_line(std::string text) {
  for (char& c : text) {
    if (c < ' ' || c > '~') c = ' ';
  }
  const size_t end = text.find_last_not_of(' ');
  text.resize(std::min(end == std::string::npos ? 0 : end + 1, kMaxMessage));
  return text;
}

}  // namespace

VipsSession::VipsSession() : lock_(session_mutex()) {
  static const bool ready = initialise();
  if (!ready) {
    throw_error(ErrorCode::kUnavailable, "[image] expected libvips to start, got '{}'",
                one_line(vips_error_buffer()));
  }
  vips_error_clear();
  last_log.clear();
}

VipsSession::~VipsSession() { vips_error_clear(); }

std::string VipsSession::message() const {
  const std::string text = one_line(vips_error_buffer());
  if (last_log.empty()) return text;
  const std::string log = one_line(last_log);
  return text.empty() ? log : text + ": " + log;
}

int64_t peak_library_bytes() { return static_cast<int64_t>(vips_tracked_get_mem_highwater()); }

}  // namespace plateau::media
