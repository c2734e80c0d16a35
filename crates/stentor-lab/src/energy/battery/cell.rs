//! A lithium-polymer cell: its charge, the voltage derived from it, and an internal resistance.

use super::super::EnergyError;
use serde::Serialize;

/// The battery of the Nexus 7, in milliampere hours (albertengo-2020).
pub const MAH_OF_NEXUS_7: f64 = 4325.0;
/// Open-circuit voltage at 0, 10, … 100 % of charge.
///
/// Zephyr's devicetree bindings, `BATTERY_OCV_CURVE_LITHIUM_ION_POLYMER_DEFAULT` (from Analog Devices' note AN4189), to the millivolt; the
/// last value is set to 4.190 V by us. It is not the curve of this phone's cell.
const OPEN_VOLT: [f64; 11] = [3.306, 3.687, 3.741, 3.775, 3.793, 3.821, 3.884, 3.945, 4.008, 4.086, 4.190];
/// Resistance of the cell and its wires in ohm, assumed by us: a tenth of a volt at one ampere.
const INNER_OHM: f64 = 0.1;
const COULOMB_PER_MAH: f64 = 3.6;
const PERCENT: f64 = 100.0;

/// A cell with its remaining charge.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BatteryCell {
    full_coulomb: f64,
    left_coulomb: f64,
    volt: f64,
}

impl BatteryCell {
    /// Returns a full cell.
    pub fn full(mah: f64) -> Result<Self, EnergyError> {
        if !(mah.is_finite() && mah > 0.0 && mah <= 1e6) {
            return Err(EnergyError::Senseless(format!("{mah} mAh is no battery")));
        }
        let coulomb = mah * COULOMB_PER_MAH;
        Ok(Self { full_coulomb: coulomb, left_coulomb: coulomb, volt: OPEN_VOLT[10] })
    }

    /// Returns the remaining charge in percent.
    #[must_use]
    pub fn percent(&self) -> f64 {
        self.left_coulomb / self.full_coulomb * PERCENT
    }

    /// Returns the terminal voltage under the last load.
    #[must_use]
    pub const fn volt(&self) -> f64 {
        self.volt
    }

    /// Returns true if the cell is empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.left_coulomb <= 0.0
    }

    /// Takes a power for some seconds at constant voltage.
    pub fn take(&mut self, watt: f64, seconds: f64) {
        let open = self.open_volt();
        // The current that gives this power behind the resistance; a cell gives no more power beyond half its voltage.
        let root = (open * open - 4.0 * INNER_OHM * watt).max(0.0).sqrt();
        self.volt = f64::midpoint(open, root);
        let ampere = (open - self.volt) / INNER_OHM;
        self.left_coulomb = (self.left_coulomb - ampere * seconds).max(0.0);
    }

    /// Returns the voltage without a load.
    fn open_volt(&self) -> f64 {
        let place = (self.left_coulomb / self.full_coulomb * 10.0).clamp(0.0, 10.0);
        let below = (place as usize).min(9);
        OPEN_VOLT[below] + (OPEN_VOLT[below + 1] - OPEN_VOLT[below]) * (place - below as f64)
    }

    /// Returns the energy of a full cell without its resistance, in joules, for comparison.
    #[must_use]
    pub fn joules_of_full(&self) -> f64 {
        let means = OPEN_VOLT.windows(2).map(|pair| f64::midpoint(pair[0], pair[1]));
        means.sum::<f64>() / 10.0 * self.full_coulomb
    }
}
