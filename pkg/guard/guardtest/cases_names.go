package guardtest

import (
	"strings"

	"github.com/pawl-lock/pawl/pkg/fence"
)

// odd are names that something on the way to a store could take for something
// else: a path, an expression, a quote, another name.
var odd = []string{
	"suite/a/b//c/",
	"suite/a.b[0].c",
	`suite/it's "quoted" \ and back`,
	"suite/#hash :colon ${dollar} {brace} %25 %s ?",
	"suite/; DROP TABLE fence; --",
	"suite/*[a-z]^$|()+",
	"suite/ spaces at both ends ",
	"suite/日本語 🔒 Ünïcödé",
	"suite/\u202eright to left",
	"suite/0",
	"suite/null",
	"suite/lock=b",
	"suite/" + strings.Repeat("é", 256),
	strings.Repeat("n", 63) + "/" + strings.Repeat("x", 512),
}

// alike are pairs that some comparison takes for the same.
var alike = [][2]string{
	{"suite/orders", "suite/Orders"},
	{"suite/orders", "suite/orders "},
	{"suite/orders", "suite/ orders"},
	{"suite/caf\u00e9", "suite/cafe\u0301"},
	{"suite/cafe", "suite/caf\u00e9"},
	{"suite/strasse", "suite/stra\u00dfe"},
	{"suite/a.b", "suite/a%2Eb"},
	{"suite/a/b", "suite/a"},
	{"suite/1", "suite/01"},
	{"suite/" + strings.Repeat("x", 511) + "a", "suite/" + strings.Repeat("x", 511) + "b"},
}

// impossible are names that no lock can have. Some stores would refuse them in
// their own words, or take two of them for one.
var impossible = []string{
	"", "suite/\xff", "suite/\xfe", "suite/\xed\xa0\x80", "suite/\x00", "suite/a\nb", "suite/\x7f", "suite/\u0085",
	strings.Repeat("n", fence.MaxLock+1),
}

var names = []promise{
	{"what no lock can be called is refused by name", func(x *trial) {
		for _, name := range impossible {
			for _, c := range any3 {
				x.invalid(c, name, 1)
			}
		}
		x.isEmpty()
		x.write(lockA, 1, "one")
		for _, name := range impossible {
			for _, c := range any3 {
				x.invalid(c, name, 2)
			}
		}
		x.holds("one")
	}, false},
	{"the name of a lock may be any text", func(x *trial) {
		for _, name := range odd {
			x.fresh()
			x.write(name, 5, "five")
			x.stale(write("four"), name, 4, 5)
			x.other(write("other"), lockA, 6, name)
			x.holds("five")
			x.fresh(name, lockA)
			x.write(lockA, 9, "nine")
			x.write(name, 5, "five")
			x.stale(write("four"), name, 4, 5)
			x.holds("five")
		}
	}, true},
	{"names are compared byte by byte", func(x *trial) {
		for _, pair := range alike {
			x.fresh()
			x.write(pair[0], 5, "five")
			x.other(write("six"), pair[1], 6, pair[0])
			x.holds("five")
			x.fresh(pair[0], pair[1])
			x.write(pair[0], 9, "nine")
			x.write(pair[1], 5, "five")
			x.stale(write("eight"), pair[0], 8, 9)
			x.stale(write("four"), pair[1], 4, 5)
		}
	}, true},
	{"a text is kept as it is", func(x *trial) {
		for _, text := range []string{
			"", " ", " spaces at both ends ", "line\r\nline\n\ttab\n", "\x01\x7f\u0085\u2028\ufeff",
			`'quotes" \ ` + "`", "${dollar} {brace} %25 %s :colon ?", "日本語 🔒 e\u0301", "null", "0",
			strings.Repeat("0123456789", 6000),
		} {
			x.write(lockA, 1, text)
			x.holds(text)
		}
	}, false},
}
