//! A lithium-polymer cell: charge, the voltage that follows from it, and a resistance inside.

use super::super::EnergyError;
use serde::Serialize;

/// The battery of the Nexus 7, in milliampere hours (albertengo-2020).
pub const MAH_OF_NEXUS_7: f64 = 4325.0;
/// Volt without a load at 0, 10, … 100 % of charge.
///
/// Zephyr's devicetree bindings, `BATTERY_OCV_CURVE_LITHIUM_ION_POLYMER_DEFAULT` (from Analog Devices' note AN4189), to
/// the millivolt; the last is set to 4.190 V by us. It is no curve of this phone's cell.
const OPEN_VOLT: [f64; 11] = [3.306, 3.687, 3.741, 3.775, 3.793, 3.821, 3.884, 3.945, 4.008, 4.086, 4.190];
/// Ohm of the cell and its wires: our assumption; a tenth of a volt at an ampere.
const INNER_OHM: f64 = 0.1;
const COULOMB_PER_MAH: f64 = 3.6;
const PERCENT: f64 = 100.0;

/// A cell with what is left in it.
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

    /// Returns the charge that is left, of 100.
    #[must_use]
    pub fn percent(&self) -> f64 {
        self.left_coulomb / self.full_coulomb * PERCENT
    }

    /// Returns the voltage at the contacts under the last load.
    #[must_use]
    pub const fn volt(&self) -> f64 {
        self.volt
    }

    /// Returns whether nothing is left.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.left_coulomb <= 0.0
    }

    /// Takes a power for some seconds, in which the voltage is taken to stay.
    pub fn take(&mut self, watt: f64, seconds: f64) {
        let open = self.open_volt();
        // The current that gives this power behind the resistance; beyond half the voltage a cell gives no more.
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

    /// Returns the joules of a full cell without its resistance, to compare with.
    #[must_use]
    pub fn joules_of_full(&self) -> f64 {
        let means = OPEN_VOLT.windows(2).map(|pair| f64::midpoint(pair[0], pair[1]));
        means.sum::<f64>() / 10.0 * self.full_coulomb
    }
}
