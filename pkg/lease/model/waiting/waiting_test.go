package waiting

import (
	"testing"

	"github.com/pawl-lock/pawl/pkg/lease/model/explore/exploretest"
)

func TestEveryInvariantHoldsInEveryCase(t *testing.T) { exploretest.Run(t, Cases()) }

func TestEveryPlantedBugIsFound(t *testing.T) { exploretest.Run(t, PlantedBugs()) }
