package guards

import "github.com/pawl-lock/pawl/pkg/lease/model/explore"

func entry(name, breaks string, c config) explore.Case {
	return explore.Case{Name: name, Breaks: breaks, Run: func(limit int) explore.Result {
		return explore.Run(model{c}, limit)
	}}
}

// Cases returns what must hold.
func Cases() []explore.Case {
	return []explore.Case{
		entry("compare the version of body and token; tombstones", "", config{deletes: true}),
		entry("claim, then read", "", config{reads: true, claims: true}),
		entry("claim, then read; tombstones", "", config{reads: true, claims: true, deletes: true}),
	}
}

// PlantedBugs returns what must be found.
func PlantedBugs() []explore.Case {
	return []explore.Case{
		entry("a version of the body only, the token in metadata", "FENCING", config{versionOfBody: true}),
		entry("a delete that forgets the token", "FENCING", config{deletes: true, forgets: true}),
		entry("check, then write", "FENCING", config{checksThenActs: true}),
		entry("an equal token is refused", "LOCKOUT", config{strict: true}),
		entry("read without a claim", "READ", config{reads: true}),
	}
}
