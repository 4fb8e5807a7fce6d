package httplease

import (
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/pawl-lock/pawl/pkg/lease"
)

// maxLine is the most that the line of one call has, in bytes. Lines are paid
// for, and a caller must not be able to make them long.
const maxLine = 4 << 10

// rest is more than a line has beside its texts, metrics included.
const rest = 1000

// log writes the one line that a call leaves. It never has a lease id: who
// reads logs must not be able to release what others hold.
func (h *Handler) log(c *call, err error, took time.Duration) {
	log := h.Log
	if log == nil {
		log = slog.Default()
	}
	level, left := slog.LevelInfo, maxLine-rest
	text := func(key, s string, limit int) slog.Attr {
		s, size := legible(s, limit)
		left -= size
		return slog.String(key, s)
	}
	attrs := []slog.Attr{
		slog.String("action", c.action),
		text("namespace", c.name.Namespace, 63),
		text("lock", c.name.Lock, 512),
		slog.Int64("token", int64(c.token)),
		text("holder", c.holder, maxHolder),
		text("principal", c.Principal, 384),
		slog.String("outcome", c.outcome),
		slog.Int("status", c.status),
		slog.Int("store_requests", c.Requests),
		slog.Float64("store_ms", ms(c.StoreTime)),
		slog.Float64("ms", ms(took)),
	}
	if c.reason != "" {
		attrs = append(attrs, text("reason", c.reason, 256))
	}
	if c.newToken != 0 {
		attrs = append(attrs, slog.Int64("new_token", int64(c.newToken)))
	}
	if lease.KnownLost(err) { // its holder worked on without it, unlike one who made it up
		attrs = append(attrs, slog.Bool("late", true))
	}
	if c.status >= 500 {
		level = slog.LevelError
		attrs = append(attrs, text("error", err.Error(), left/2))
	}
	log.LogAttrs(c.ctx, level, "call", attrs...)
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// legible returns what the log has of a text that a caller chose, and its size
// as JSON: at most limit bytes of the text and twice as many of JSON, which is
// enough for every text that has no more than limit bytes of what can be seen.
// What was cut off is counted at the end.
//
// What would end a line, change the direction of what follows, or not be seen
// at all, is written as its code point: \u202e. So is each byte that is not
// UTF-8: \xff. Names that look alike on a page differ here.
func legible(s string, limit int) (text string, size int) {
	if len(s) <= limit && !strings.ContainsFunc(s, conspicuous) {
		return s, len(s)
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		shown, cost := s[i:i+n], n
		switch {
		case r == utf8.RuneError && n == 1:
			shown, cost = fmt.Sprintf(`\x%02x`, s[i]), 5
		case unicode.In(r, unseen...):
			shown = strings.Trim(strconv.QuoteRuneToASCII(r), "'")
			cost = len(shown) + 1
		case r == '"' || r == '\\':
			cost = 2
		}
		if i+n > limit || size+cost > 2*limit {
			more := fmt.Sprintf("… and %d bytes more", len(s)-i)
			return b.String() + more, size + len(more)
		}
		b.WriteString(shown)
		size += cost
		i += n
	}
	return b.String(), size
}

// conspicuous is a rune that may be more in the log than it is in a text.
func conspicuous(r rune) bool {
	return r < ' ' || r >= 0x7f || r == '"' || r == '\\'
}

// unseen are the characters that people do not see, or see as something else.
var unseen = []*unicode.RangeTable{
	unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point,
}
